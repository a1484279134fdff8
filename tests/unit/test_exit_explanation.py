"""Tests explaining why a program was not found or did not start, from messages of real shells and a real Python."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from howdah.executor.process.exit_explanation import explain, not_started, why_not_started
from howdah.logs.last_lines import output_end
from howdah.spec import Exit

TORCHRUN = (
    "E1130 07:19:07.4 8 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: 1) local_rank: 0",
    "Traceback (most recent call last):",
    '  File "/env/bin/torchrun", line 12, in <module>',
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
    "============================================================",
    "Root Cause (first observed failure):",
    "[0]:",
    "  rank      : 0 (local_rank: 0)",
    "  exitcode  : 1 (pid: 15259) ",
)
SHELLS = [shell for shell in ("/bin/bash", "/bin/dash") if Path(shell).exists()]


def explained(argv: list[str], directory: Path) -> str:
    environment = {**os.environ, "LC_ALL": "C"}
    done = subprocess.run(argv, cwd=directory, env=environment, capture_output=True, timeout=60, check=False)
    lines = tuple(done.stderr.decode("utf-8", "replace").splitlines())
    return str(explain(Exit("exit", done.returncode, lines=lines), str(directory)))


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "plain.txt").write_text("x")
    (tmp_path / "lost.sh").write_text("#!/nowhere/interpreter\n")
    (tmp_path / "calls.sh").write_text("echo begun\nno-such-program --x\n")
    (tmp_path / "module.py").write_text("import no_such_module.part\n")
    (tmp_path / "binary").write_bytes(b"\x7fELF" + bytes(range(1, 60)))
    for name in ("lost.sh", "binary"):
        (tmp_path / name).chmod(0o755)
    return tmp_path


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("no-such-program --x", "exit code 127: 'no-such-program' is not found on PATH: name an environment that"),
        ("bash calls.sh", "exit code 127: 'no-such-program' is not found on PATH: name an environment that has it"),
        ("/usr/bin/env no-such-program", "exit code 127: 'no-such-program' is not found on PATH: name an environment"),
        ("./train.sh", "exit code 127: 'train.sh' is not in the working directory: add it to `files`"),
        ("bash train.sh", "exit code 127: 'train.sh' is not in the working directory: add it to `files`"),
        ("/nowhere/python x.py", "exit code 127: this node has no '/nowhere/python': add it to `files`, or name"),
        ("./plain.txt", "exit code 126: './plain.txt' may not be executed: write its interpreter before it"),
        (f"{sys.executable} train.py", "exit code 2: 'train.py' is not in the working directory: add it to `files`"),
        (f"{sys.executable} /nowhere/x.py", "exit code 2: this node has no '/nowhere/x.py': add it to `files`, or"),
        (f"{sys.executable} module.py", "exit code 1: Python has no module 'no_such_module' here: name an environment"),
        ("sh -c 'kill -9 $$'; exit $?", "exit code 137: in a shell that means killed by SIGKILL (9)"),
        ("exit 190", "exit code 190"),
    ],
)
def test_what_was_missing_is_named_with_what_to_do(shell: str, line: str, expected: str, directory: Path) -> None:
    assert explained([shell, "-c", line], directory).startswith(expected)


def test_a_script_whose_interpreter_is_missing(directory: Path) -> None:
    said = explained(["/bin/bash", "-c", "./lost.sh"], directory)
    assert "the interpreter that the first line of './lost.sh' names is not there" in said


@pytest.mark.parametrize("interpreter", ["/bin/bash", "/usr/bin/env python3"])
def test_a_script_with_windows_line_ends(interpreter: str, directory: Path) -> None:
    (directory / "windows.sh").write_bytes(f"#!{interpreter}\r\necho hi\r\n".encode())
    (directory / "windows.sh").chmod(0o755)
    assert "a script has Windows line ends (CRLF)" in explained(["/bin/bash", "-c", "./windows.sh"], directory)
    said = explain(Exit("exit", 127, lines=("run.sh: line 2: $'\\r': command not found",)), str(directory))
    assert "a script has Windows line ends (CRLF)" in str(said)


def test_what_is_no_program_for_this_node(directory: Path) -> None:
    assert "'./binary' is no program for this node" in explained(["/bin/bash", "-c", "./binary"], directory)


@pytest.mark.parametrize(
    ("code", "line", "expected"),
    [
        (127, "/bin/bash: 行 1: python: 未找到命令", "'python' is not found on PATH"),
        (127, "/bin/bash：行 1：python：未找到命令", "'python' is not found on PATH"),
        (127, "/usr/bin/env: “python”: 没有那个文件或目录", "'python' is not found on PATH"),
        (127, "bash: ./x.sh: 没有那个文件或目录", "'x.sh' is not in the working directory"),
        (126, "bash: ./x.sh: 权限不够", "'./x.sh' may not be executed"),
        (126, "bash: ./x.sh: /usr/bin/python: bad interpreter: No such file or directory", "line of './x.sh' names"),
        (127, "sh: foo: not found", "'foo' is not found on PATH"),
    ],
)
def test_other_shells_and_languages(code: int, line: str, expected: str) -> None:
    assert expected in str(explain(Exit("exit", code, lines=("before", line)), "/work"))


@pytest.mark.parametrize(
    "exit",
    [
        Exit("exit", 0, lines=("sh: foo: not found",)),
        Exit("exit", 127, detail="something else is known", lines=("sh: foo: not found",)),
        Exit("signal", signal=9, lines=("sh: foo: not found",)),
        Exit("exit", 127, lines=("=====",)),
        Exit("exit", 127),
        Exit("stopped", 1, detail="stopped", lines=("it went on",)),
    ],
)
def test_an_exit_without_a_known_message_is_not_explained(exit: Exit) -> None:
    assert explain(exit, "/work") is exit


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["no-such-program"], "'no-such-program' is not found on PATH: name an environment that has it (environment)"),
        (["./train.sh"], "'train.sh' is not in the working directory: add it to `files`"),
        (["./lost.sh"], "the interpreter that the first line of './lost.sh' names is not there"),
        (["./plain.txt"], "'./plain.txt' may not be executed"),
        (["./binary"], "'./binary' is no program for this node"),
    ],
)
def test_a_list_of_arguments_needs_no_shell_to_be_explained(argv: list[str], expected: str, directory: Path) -> None:
    with pytest.raises(OSError, match=r".") as error:
        subprocess.run(argv, cwd=directory, check=True, timeout=60)
    assert why_not_started(argv, {"PATH": "/bin"}, str(directory), error.value).startswith(expected)


@pytest.mark.parametrize(
    ("program", "expected", "permanent"),
    [
        ("import no_such_module", "exit code 1: Python has no module 'no_such_module' here", True),
        ("x = = 1", "exit code 1: program.py, line 1: SyntaxError: invalid syntax", True),
        ("def f():\nreturn 1", "exit code 1: program.py, line 2: IndentationError: expected an indented block", True),
        ("import no_such.x\nraise SystemExit(3)", "exit code 1: Python has no module 'no_such' here", True),
        ("raise ValueError('loss is nan')", "exit code 1: ValueError: loss is nan", False),
        ("raise RuntimeError('CUDA error\\nCompile with X')", "exit code 1: RuntimeError: CUDA error", False),
        ("try: 1/0\nexcept Exception as e: raise OSError('disk') from e", "exit code 1: OSError: disk", False),
        ("assert 1 == 2", "exit code 1: AssertionError", False),
        ("raise SystemExit(3)", "exit code 3", False),
        ("import traceback\ntry: 1/0\nexcept Exception: traceback.print_exc()\nprint('x\\n' * 9); raise SystemExit(3)",
         "exit code 3", False),
        ("raise OSError('login with api_key=abcdef failed')", "exit code 1: OSError: login with api_key=***", False),
        ("try:\n import nosuch\nexcept ImportError: import traceback, sys; traceback.print_exc(); sys.exit(75)",
         "exit code 75: Python has no module 'nosuch' here", False),
        ("import ast; ast.literal_eval('{')", "exit code 1", False),
        ("raise OSError('refused for hunter2-abc')", "exit code 1: OSError: refused for ***", False),
        ("raise ValueError('x' * 1000)", f"exit code 1: ValueError: {'x' * 288}…", False),
    ],
)  # fmt: skip
def test_how_a_program_of_python_failed(program: str, expected: str, permanent: bool, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(program)
    command = [sys.executable, "program.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    lines = tuple((done.stdout + done.stderr).splitlines())
    found = explain(Exit("exit", done.returncode, lines=lines), str(tmp_path), ["hunter2-abc"])
    assert str(found).startswith(expected)
    assert found.permanent is permanent


def test_what_libraries_print_after_an_exception_hides_it_not() -> None:
    lines = ("Traceback (most recent call last):", '  File "t.py", line 1, in <module>', "torch.OutOfMemoryError: CUDA")
    found = explain(Exit("exit", 1, lines=(*lines, "[rank0]:[W] destroy_process_group() was not called")), "/")
    assert str(found) == "exit code 1: torch.OutOfMemoryError: CUDA"
    assert found.exception == "torch.OutOfMemoryError: CUDA"


@pytest.mark.parametrize(
    ("code", "lines", "expected"),
    [
        (1, ("sh: foo: not found",), "exit code 1: it printed last: sh: foo: not found"),
        (1, ("no data in /data/x", "====", ""), "exit code 1: it printed last: no data in /data/x"),
        (1, ("login with api_key=abcdef failed",), "exit code 1: it printed last: login with api_key=*** failed"),
        (1, ("ModuleNotFoundError: No module named 'x'", "went on"), "exit code 1: it printed last: went on"),
        (2, ("a.py: error: unrecognized arguments: -x",), "exit code 2: a.py: error: unrecognized arguments: -x"),
        (126, ("bash: line 1: /tmp: Is a directory",), "exit code 126: '/tmp' is a directory, which cannot be"),
    ],
)
def test_the_last_line_is_told_where_nothing_explains_the_end(code: int, lines: tuple[str, ...], expected: str) -> None:
    assert str(explain(Exit("exit", code, lines=lines), "/")).startswith(expected)


def test_what_is_shown_last_is_not_all_that_is_searched() -> None:
    frames = ('  File "t.py", line 1, in f', "    f()") * 300
    end = output_end("\n".join(("Traceback (most recent call last):", *frames, "ValueError: x")).encode(), b"result")
    found = explain(Exit("exit", 1, lines=("    f()", "ValueError: x")), "/", (), end)
    assert (found.exception, found.detail) == ("ValueError: x", "exit code 1: ValueError: x")
    results = output_end(b"[howdah: a part of the pipeline ended]\n", b"loss 0.3\n")
    assert explain(Exit("exit", 1), "/", (), results).detail == ""


def test_a_missing_module_under_torchrun_would_fail_again() -> None:
    lines = ("Traceback (most recent call last):", '  File "t.py", line 1', "ModuleNotFoundError: No module named 'x'")
    found = explain(Exit("exit", 1, lines=(*lines, *TORCHRUN)), "/")
    assert found.permanent
    assert found.detail.startswith("exit code 1: Python has no module 'x' here")


@pytest.mark.parametrize(
    ("code", "lines", "permanent"),
    [
        (127, ("bash: line 1: pyhton: command not found",), True),
        (127, ("cat: /data/x: No such file or directory", "step 3 failed"), False),
        (126, ("mkdir: cannot create directory '/x': Permission denied", "docker: i/o timeout"), False),
        (1, ("ModuleNotFoundError: No module named 'x'", "", ""), True),
        (75, ("ModuleNotFoundError: No module named 'x'",), False),
        (1, ("ModuleNotFoundError: No module named 'x'", "[howdah: a part of the pipeline ended …]"), True),
        (
            127,
            ("env: ‘python3\\r’: No such file or directory", "env: use -[v]S to pass options in shebang lines"),
            True,
        ),
        (1, ("/usr/bin/python3: No module named nosuch",), True),
        (1, ("python: Error while finding module specification for 'x.y' (Module…: No module named 'x')",), True),
        (1, ("my-loader: No module named lr_scheduler in the registry",), False),
        (1, ("ImportError: cannot import name 'x' from 'os' (/usr/lib/os.py)",), True),
        (1, ("ImportError: libcuda.so.1: cannot open shared object file",), False),
        (2, ("/bin/bash: -c: line 2: syntax error: unexpected end of file",), True),
        (2, ("bash: -c: line 1: syntax error near unexpected token `done'", "bash: -c: line 1: `done'"), True),
        (2, ("sh: 1: Syntax error: Unterminated quoted string",), True),
        (2, ('bash: -c:行1: 未预期的记号 "done" 附近有语法错误',), True),
        (3, ("sh: 1: Syntax error: Unterminated quoted string",), False),
        (126, ("/bin/bash: line 1: /tmp: Is a directory",), True),
        (1, ("cp: /x: Is a directory",), False),
        (2, ("usage: a.py [-h]", "a.py: error: the following arguments are required: --data"), True),
        (2, ("a.py: error: argument --n: invalid int value: 'x'",), True),
        (2, ("a.py: error: argument --ckpt: invalid existing_path value: 'last'",), False),
        (2, ("a.py: error: no GPU is free",), False),
        (2, ("a.py: error: argument --data: can't open 'x': [Errno 2] No such file or directory: 'x'",), False),
    ],
)
def test_only_the_last_line_says_that_it_would_fail_again(code: int, lines: tuple[str, ...], permanent: bool) -> None:
    assert explain(Exit("exit", code, lines=lines), "/").permanent is permanent


def test_what_could_not_be_executed_would_fail_again_only_if_it_is_not_there() -> None:
    missing = FileNotFoundError(2, "No such file or directory", "pyhton")
    assert not_started(["pyhton", "x"], {}, "/", missing).permanent
    assert not not_started(
        ["python"], {}, "/", FileNotFoundError(2, "No such file or directory", "/run/pipe")
    ).permanent
    assert not not_started(["./run.sh"], {}, "/", PermissionError(13, "Permission denied", "./run.sh")).permanent
