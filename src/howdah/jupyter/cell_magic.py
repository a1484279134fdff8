"""The magics of `%load_ext howdah`: `%%howdah` runs the code of its cell as a job, `%howdah` runs a command of howdah.

The job's program is the cell itself. The magic's line is the first line of the cell: in the program it is replaced by a
line that loads the variables, so that the line numbers of tracebacks are those of the cell. Lines after the last one
keep the results. Python allows no other statement before `from __future__` imports, so in a cell with such imports the
variables are loaded after the last of them.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import pickle
import secrets
import shlex
import sys
from pathlib import Path
from typing import Any

import click

from howdah.cli import cli
from howdah.cli.i18n import translate_stored
from howdah.cli.interrupts import Interrupts, SignalReceived
from howdah.cli.job_arguments import WORDS, CommandWithProgram, job_options
from howdah.cli.run import prepared_job, submit_prepared
from howdah.cli.terminal import Plain, verdict
from howdah.client.command_job import ROLE
from howdah.client.engine_registry import engine as engine_for
from howdah.client.engine_registry import settings_for
from howdah.client.follow import Follower, Update
from howdah.client.job_end import cancel_job, report_of
from howdah.client.page_links import page_url_if_known
from howdah.client.submit import PreparedJob
from howdah.errors import HowdahError, JobFailed, JobNotFound, SpecError, StagingError
from howdah.jupyter.live_table import LiveTable
from howdah.spec import State, uris
from howdah.storage.factory import filesystem
from howdah.storage.hdfs.call_timeout import start_call
from howdah.wire.program_protocol import FUNCTION_RESULTS

RESULT_FILE = "results.pickle"
PATIENCE_S = 300.0
"""Seconds for which an engine may not answer before a running job is given up."""
_BRING = "import pickle as _pickle; globals().update(_pickle.load(open({file!r}, 'rb')))"
_KEEP = """
def _keep(names, directory, file):
    import os, pickle

    values = globals()
    wrong = {{name: "there is no such variable" for name in names if name not in values}}

    def write():
        with open(os.path.join(directory, file), "wb") as opened:
            pickle.dump(({{name: values[name] for name in names if name not in wrong}}, wrong), opened)

    os.makedirs(directory, exist_ok=True)
    try:
        return write()  # together: what two of them have in common stays one object
    except Exception:
        pass
    for name in names:
        try:
            pickle.dumps(values.get(name))
        except Exception as error:
            wrong[name] = f"{{type(error).__name__}}: {{error}}"
    write()


_keep({names!r}, {directory!r}, {file!r})
"""
"""Keeps the variables that come back, and the reason for each that cannot be kept: a single one must not cost the work
of hours."""


@click.command(cls=CommandWithProgram, name="%%howdah")
@job_options
@click.option("--in", "brought", default="", metavar="NAME,NAME", help="Variables that the code uses.")
@click.option("--out", "kept", default="", metavar="NAME,NAME", help="Variables to return from the first task.")
@click.option("--logs", "log_tasks", default="chief", help="Whose output to show: chief, all, none, a role, a task.")
def run_cell(brought: str, kept: str, log_tasks: str, **options: Any) -> None:
    """Run the code of the cell as a job, and wait for its end."""
    code, variables = click.get_current_context().obj
    # In the working directory, so that modules beside the notebook are found, and go along.
    program = Path.cwd() / f".cell-{secrets.token_hex(4)}.py"
    given, results = program.with_suffix(".pickle"), ""
    click.get_current_context().meta[WORDS] = ("python", program.name)
    options["name"] = options["name"] or "cell"
    if brought:
        options["files"] = (*options["files"], given.name)
    if kept:
        home = engine_for(settings_for({"engine": options["engine"], "profile": options["profile"]})).home
        results = uris.join(home, "cells", program.stem.lstrip("."))
        options["sets"] = (*options["sets"], f"outputs.{len(options['outputs'])}.tasks={ROLE}:0")
        options["outputs"] = (*options["outputs"], f"{results}#{FUNCTION_RESULTS}")
    try:
        program.write_text(cell_program(code, given.name if brought else "", _names(kept)), encoding="utf-8")
        if brought:
            given.touch(0o600)  # others may read the directory
            given.write_bytes(_pickled(variables, _names(brought)))
        del options["as_json"]
        prepared = prepared_job(**options)
        job_id = submit_prepared(prepared, quiet=True)
    finally:
        program.unlink(missing_ok=True)
        given.unlink(missing_ok=True)
    _follow(prepared, job_id, "" if log_tasks == "none" else log_tasks)
    if results:
        bring_back(results, prepared.plan.job.settings.get("hadoop_conf_dir", ""), variables)


def bring_back(results: str, conf_dir: str, variables: dict[str, Any]) -> None:
    """Load what a cell's program has kept at the URI `results` into `variables`, and remove it there.

    Raises:
        StagingError, EngineUnavailable: it can't be read here, and stays; or not all variables could be kept.
    """
    files, uri = filesystem(results, conf_dir), uris.join(results, RESULT_FILE)
    content = files.read_bytes(uri)
    try:
        found, wrong = pickle.loads(content)  # noqa: S301 - the user's own code has written it, into the user's own home
    except Exception as error:
        kind = type(error).__name__
        raise StagingError(f"what --out names can't be read here, and stays in {uri}: {kind}: {error}") from error
    variables.update(found)
    files.delete(results)
    if wrong:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in wrong.items())
        raise StagingError(f"--out: of {len(found) + len(wrong)} variables {len(found)} came back, without {reasons}")


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def cell_program(code: str, given: str, kept: tuple[str, ...]) -> str:
    """Return the program of a cell: `given` is the file with its variables, `kept` names those that come back."""
    bring = _BRING.format(file=given) if given else "# %%howdah"
    last = _KEEP.format(names=kept, directory=FUNCTION_RESULTS, file=RESULT_FILE) if kept else ""
    before, after = _split_at_future_imports(code) if given else ("", code)
    program = f"# %%howdah\n{before}; {bring}{after}" if before else f"{bring}\n{code}"
    return f"{program.rstrip()}\n{last}\n"


def _split_at_future_imports(code: str) -> tuple[str, str]:
    """Return the code up to its last import from `__future__`, and the rest; "" and all of it if there is none."""
    try:
        statements = ast.parse(code).body
    except (SyntaxError, ValueError):  # the program will report it
        return "", code
    found = [each for each in statements if isinstance(each, ast.ImportFrom) and each.module == "__future__"]
    if not found:
        return "", code
    lines = code.encode().split(b"\n")  # columns are counted in bytes
    end, column = found[-1].end_lineno or 0, found[-1].end_col_offset or 0
    before = b"\n".join([*lines[: end - 1], lines[end - 1][:column]]).decode()
    return before, code[len(before) :]


def _pickled(variables: dict[str, Any], names: tuple[str, ...]) -> bytes:
    missing = [name for name in names if name not in variables]
    if missing:
        raise SpecError.at("--in", f"there is no variable {', '.join(missing)}")
    for name in names:
        try:
            pickle.dumps(variables[name])
        except Exception as error:  # the class of the object may raise anything
            raise SpecError.at("--in", f"{name} cannot be pickled: {error}") from error
    return pickle.dumps({name: variables[name] for name in names})


class _Output(Plain):
    """Prints only the output of tasks; the table shows the state of the tasks."""

    def show(self, update: Update) -> None:
        for task, stream, data in update.logs:
            self._feed(task, stream, data)


def _follow(prepared: PreparedJob, job_id: str, log_tasks: str) -> None:
    """Show the job to its end; an interruption of the cell cancels it.

    Raises:
        JobFailed: the job has failed, or was cancelled.
    """
    engine, table, output = prepared.engine, LiveTable(job_id), _Output(sys.stdout)
    follower = Follower(engine, job_id, log_tasks, PATIENCE_S)
    updates = follower.updates()
    with output, Interrupts() as interrupts:
        try:
            while update := interrupts.wait(start_call(lambda: next(updates, None))):
                output.show(update)
                find_page = functools.partial(page_url_if_known, engine, update.report)
                table.show(update.view, find_page)
        except SignalReceived:
            with contextlib.suppress(JobNotFound):
                interrupts.call(lambda: cancel_job(engine, report_of(engine, job_id), _notice))
            raise KeyboardInterrupt from None
    if follower.view.state is not State.SUCCEEDED:
        raise JobFailed("\n".join(map(click.unstyle, verdict(follower.view))))


def _notice(text: str) -> None:
    click.echo(translate_stored(text), err=True)


def load_ipython_extension(shell: Any) -> None:
    """Add the magics to an IPython shell, as `%load_ext howdah` does."""

    def howdah(line: str, cell: str | None = None) -> None:
        command, given = (run_cell, (cell, shell.user_ns)) if cell is not None else (cli, None)
        try:
            command.main(shlex.split(line), prog_name="%howdah", standalone_mode=False, obj=given)
        except click.Abort:  # click turns an interruption into this
            raise KeyboardInterrupt from None
        except (HowdahError, click.ClickException) as error:
            text = error.format_message() if isinstance(error, click.ClickException) else str(error)
            error._render_traceback_ = lambda: [f"howdah: {text}"]  # type: ignore[union-attr]  # IPython shows this
            raise

    shell.register_magic_function(howdah, "line_cell", "howdah")
