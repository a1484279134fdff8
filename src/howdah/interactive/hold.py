"""Runs on the node, with the Python of the job: keeps a machine for a while, and runs a program meanwhile.

`hold.py --for SECONDS [-- COMMAND…]` ends with its command, or when the time is over: then the command gets TERM, and
has `--stop SECONDS` until it is killed. When the executor stops the task, it sends TERM to the command, too, and kills
it; then hold.py only waits. The end of the time is in the file `howdah-until`, in seconds since 1970. `hold.py --extend
SECONDS`, in the same directory, writes a later one. `{port}` in the command is the port `http` of the task. JupyterLab
shows how much time is left, from a file that it serves (`limit_notice.js`).
"""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

UNTIL = Path("howdah-until")
STATIC = Path("howdah-static")
LIMIT_FILE = "howdah-limit.json"
EXTENSION = "howdah-limit"
WARN_S, LOOK_S, STOP_S = 600.0, 1.0, 10.0


def until() -> float:
    """Return when the time is over, in seconds since 1970."""
    return float(UNTIL.read_text("ascii"))


def write_until(end: float) -> None:
    """Write when the time is over, in one step."""
    new = UNTIL.with_suffix(".new")
    new.write_text(f"{end:.0f}", "ascii")
    new.replace(UNTIL)


def until_or_again(known: float) -> float:
    """Return when the time is over. If a user has removed or changed the file, which is in the directory where his
    shell begins, write it again with the `known` time."""
    try:
        return until()
    except (OSError, ValueError):
        with contextlib.suppress(OSError):
            write_until(known)
        return known


def extend(seconds: float) -> None:
    """Let the job go on for `seconds` from now, but never end sooner than before; print until when."""
    end = max(until(), time.time() + seconds)
    write_until(end)
    print(time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(end)))


def publish(end: float) -> None:
    """Write the file by which JupyterLab shows how much time is left."""
    job = os.environ.get("HOWDAH_JOB_ID", "ID")
    content = {"until": end, "warn_s": WARN_S, "command": f"howdah extend {job} --for 1h"}
    new = STATIC / f"{LIMIT_FILE}.new"
    new.write_text(json.dumps(content), "utf-8")
    new.replace(STATIC / LIMIT_FILE)


def install_extension(script: Path) -> None:
    """Make the directory of JupyterLab extensions that `--LabServerApp.extra_labextensions_path` names."""
    directory = Path("howdah-labextensions") / EXTENSION
    (directory / "static").mkdir(parents=True, exist_ok=True)
    (directory / "static" / "remoteEntry.js").write_text(script.read_text("utf-8"), "utf-8")
    build = {"load": "static/remoteEntry.js", "extension": "./extension"}
    described = {"name": EXTENSION, "version": "1.0.0", "jupyterlab": {"extension": True, "_build": build}}
    (directory / "package.json").write_text(json.dumps(described), "utf-8")


def watch(program: "subprocess.Popen[bytes] | None") -> int:
    """Wait for the end of the time or of the program; return the exit status."""
    end, published, warned = until(), 0.0, False
    while True:
        end = until_or_again(end)
        left = end - time.time()
        if end != published:
            published, warned = end, False
            with contextlib.suppress(OSError):  # a full disk: the time counts all the same
                publish(end)
            print(f"until {time.strftime('%Y-%m-%d %H:%M:%S %Z', time.localtime(end))}", flush=True)
        if left <= WARN_S and not warned:
            warned = True
            command = f"howdah extend {os.environ.get('HOWDAH_JOB_ID', 'ID')} --for 1h"
            print(
                f"{max(0, left) / 60:.0f} minutes are left; `{command}` keeps the job for an hour from then", flush=True
            )
        if left <= 0:
            print("the time is over", flush=True)
            return 0
        try:
            if program is None:
                time.sleep(min(LOOK_S, left))
            else:
                return program.wait(min(LOOK_S, left))
        except subprocess.TimeoutExpired:
            pass


def end(program: "subprocess.Popen[bytes]", stop_s: float, is_told: bool) -> None:
    """Ask the program to end, unless it `is_told` already by the executor, which stops the task: the program may be
    saving. Kill it if it does not end within `stop_s` seconds; its children end with the task."""
    with contextlib.suppress(ProcessLookupError):
        if not is_told:
            program.terminate()
    try:
        program.wait(stop_s)
    except subprocess.TimeoutExpired:
        program.kill()


def main() -> int:
    """Keep the machine; return the exit status."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--for", dest="seconds", type=float)
    parser.add_argument("--stop", type=float, default=STOP_S)
    parser.add_argument("--extend", type=float)
    parser.add_argument("--lab", type=Path)
    parser.add_argument("--serves", help="the port of the command, for those who look for it")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    if arguments.extend:
        extend(arguments.extend)
        return 0
    Path(os.environ.get("HOWDAH_CHECKPOINT_DIR", ".")).mkdir(parents=True, exist_ok=True)
    STATIC.mkdir(exist_ok=True)
    write_until(time.time() + arguments.seconds)
    if arguments.lab:
        install_extension(arguments.lab)
    words = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    words = [word.replace("{port}", os.environ.get("HOWDAH_PORT_HTTP", "")) for word in words]
    is_stopped = []  # type: list[int]
    program = subprocess.Popen(words) if words else None
    if program is not None:
        signal.signal(signal.SIGTERM, lambda number, _: is_stopped.append(number))
    status = watch(program)
    if program is not None and program.poll() is None:
        end(program, arguments.stop, bool(is_stopped))
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main())
