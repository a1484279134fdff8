"""Lets Jupyter run a notebook's kernel as a job: on a node with GPUs, while the notebook stays on the user's own
machine.

Jupyter finds the class by its entry point. A kernel specification that `howdah kernel install` writes names the class
and the options of the job. An interruption is a message to the kernel, and a restart is a new job. After a lost
connection the kernel is found again if its job still runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import secrets
import tempfile
import urllib.parse
from pathlib import Path
from typing import Any, cast

import click
from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning.provisioner_base import KernelProvisionerBase
from traitlets import List as ListTrait
from traitlets import Unicode

from howdah.cli.job_arguments import DIRECTORY, OWN_WORDS, WORDS, CommandWithProgram, job_options
from howdah.cli.run import prepared_job, submit_prepared
from howdah.client.clusters import engine_of
from howdah.client.command_job import ROLE
from howdah.client.job_end import cancel_job, report_of
from howdah.client.start_wait import POLL_S, wait_until_running
from howdah.client.submit import PreparedJob
from howdah.errors import EngineUnavailable, HowdahError
from howdah.jupyter import run_kernel
from howdah.spec import JobSpec, State

PROGRAM = "run_kernel.py"
KEY_VARIABLE = "HOWDAH_KERNEL_KEY"


@click.command(cls=CommandWithProgram, name="kernel")
@job_options
@click.option("--display-name", default="")
def prepare_kernel(as_json: bool, display_name: str, **options: Any) -> PreparedJob:  # noqa: ARG001 - not the job's
    """Plan the job of a kernel. The context's object is a pair: the path of the file with the kernel's key, and the
    directory at which relative paths start."""
    context = click.get_current_context()
    key_file, context.meta[DIRECTORY] = context.obj
    context.meta[OWN_WORDS], context.meta[WORDS] = (), ("python", PROGRAM)
    options["files"] = (*options["files"], f"{run_kernel.__file__}#{PROGRAM}")
    options["name"] = options["name"] or "kernel"

    def add_ports(job: JobSpec) -> JobSpec:
        role = dataclasses.replace(job.roles[ROLE], ports=run_kernel.PORTS)
        key = {KEY_VARIABLE: f"file:{key_file}"}
        return dataclasses.replace(job, roles={ROLE: role}, secrets={**job.secrets, **key})

    return prepared_job(change=add_ports, **options)


def plan(arguments: list[str], key_file: Path, directory: str = "") -> PreparedJob:
    """Return the job of a kernel with these options of the command line, whose relative paths start at `directory`; ""
    is the current one.

    Raises:
        HowdahError, click.ClickException: the options are wrong, or the job cannot run.
    """
    prepared: PreparedJob = prepare_kernel.main(arguments, standalone_mode=False, obj=(key_file, directory))
    return prepared


class HowdahProvisioner(KernelProvisionerBase):
    """Submits the job that runs the kernel, tells Jupyter the kernel's address, and ends the job."""

    arguments = ListTrait(Unicode(), config=True, help="Options of the job, as `howdah run` takes them.")
    directory = Unicode("", config=True, help="Where relative paths in the options start; else where Jupyter runs.")
    job_id = Unicode("", help="The id of the job; empty while there is none.")

    @property
    def has_process(self) -> bool:
        """Return whether the kernel's job has been submitted and was not waited for."""
        return bool(self.job_id)

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Return the arguments for `launch_kernel`; the job has its own command."""
        return await super().pre_launch(cmd=[], **kwargs)

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        """Submit the job, and return where its kernel listens.

        Raises:
            HowdahError: the job cannot run, has failed, or has not started within START_LIMIT_S.
        """
        key = secrets.token_hex(32)
        self.job_id = await asyncio.to_thread(self._submit, key)
        self.log.info("the kernel is the job %s", self.job_id)
        host, ports = await self._await_start()
        found: dict[str, Any] = {f"{name}_port": port for name, port in ports.items()}
        found |= {"ip": host, "key": key.encode(), "transport": "tcp", "signature_scheme": "hmac-sha256"}
        self.connection_info = cast(KernelConnectionInfo, found)
        return self.connection_info

    def _submit(self, key: str) -> str:
        with tempfile.NamedTemporaryFile("w", prefix="howdah-kernel-") as file:
            file.write(key)
            file.flush()
            return submit_prepared(plan(list(self.arguments), Path(file.name), self.directory), quiet=True)

    async def _await_start(self) -> tuple[str, dict[str, int]]:
        """Return the address and the ports of the kernel, when its program runs. A job whose kernel is not reached is
        cancelled: no notebook would end it."""
        try:
            engine = engine_of(self.job_id)
            say = functools.partial(self.log.info, "%s")
            task = await asyncio.to_thread(wait_until_running, engine, self.job_id, say)
            return await asyncio.to_thread(self._reach, task.host, task.ports)
        except EngineUnavailable:
            with contextlib.suppress(HowdahError):  # the first reason is reported
                await self.kill()
            raise

    def _reach(self, host: str, ports: Any) -> tuple[str, dict[str, int]]:
        engine, found, reached = engine_of(self.job_id), {}, host
        for name in run_kernel.PORTS:
            url = urllib.parse.urlsplit(engine.reach_url(self.job_id, f"http://{host}:{ports[name]}"))
            reached, found[name] = url.hostname or host, int(url.port or ports[name])
        return reached, found

    async def poll(self) -> int | None:
        """Return None while the job lives, else 0 if it has succeeded, and 1 if it has not."""
        if not self.job_id:
            return 0
        report = await asyncio.to_thread(report_of, engine_of(self.job_id), self.job_id)
        return (0 if report.state is State.SUCCEEDED else 1) if report.state.ended else None

    async def wait(self) -> int | None:
        """Wait for the end of the job, and return its status as `poll` does."""
        while (status := await self.poll()) is None:
            await asyncio.sleep(POLL_S)
        self.job_id = ""
        return status

    async def send_signal(self, signum: int) -> None:
        """Do nothing: Jupyter interrupts this kernel by a message, and ends it by `terminate` and `kill`."""

    async def kill(self, restart: bool = False) -> None:
        """Cancel the kernel's job, as `terminate` does: howdah asks the program to end, then kills it."""
        await asyncio.to_thread(self._cancel)

    async def terminate(self, restart: bool = False) -> None:
        """Cancel the kernel's job, whose program may end by itself first."""
        await asyncio.to_thread(self._cancel)

    def _cancel(self) -> None:
        if self.job_id:
            engine = engine_of(self.job_id)
            cancel_job(engine, report_of(engine, self.job_id))

    async def cleanup(self, restart: bool = False) -> None:
        """Do nothing: the job leaves nothing behind."""

    async def get_provisioner_info(self) -> dict[str, Any]:
        """Return what another process of Jupyter's needs to find the kernel again."""
        return {**await super().get_provisioner_info(), "job_id": self.job_id}

    async def load_provisioner_info(self, provisioner_info: dict[str, Any]) -> None:
        """Take over a kernel from what `get_provisioner_info` returned in another process."""
        await super().load_provisioner_info(provisioner_info)
        self.job_id = provisioner_info["job_id"]
