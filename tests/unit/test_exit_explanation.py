"""Tests explaining why a program was not found or did not start, from messages of real shells and a real Python."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from howdah.executor.process.exit_explanation import explain, not_started, why_not_started
from howdah.spec import Exit

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
        Exit("exit", 1, lines=("sh: foo: not found",)),
        Exit("exit", 127, lines=("it did not work out",)),
        Exit("exit", 1, lines=("ModuleNotFoundError: No module named 'x'", "went on without it, and failed later")),
        Exit("exit", 127, detail="something else is known", lines=("sh: foo: not found",)),
        Exit("signal", signal=9, lines=("sh: foo: not found",)),
        Exit("exit", 127, lines=(": not found",)),
        Exit("exit", 127),
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
