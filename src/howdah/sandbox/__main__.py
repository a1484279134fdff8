"""`python -m howdah.sandbox up|status|down|env`: the sandbox without the rest of howdah's command line."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from howdah.errors import HowdahError
from howdah.sandbox import Sandbox
from howdah.sandbox.install import DEFAULT_HADOOP


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m howdah.sandbox")
    parser.add_argument("command", choices=["up", "status", "down", "env"])
    parser.add_argument("--hadoop", default=DEFAULT_HADOOP)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--run-dir", type=Path)
    parser.add_argument("--keep", action="store_true", help="down: keep the data")
    arguments = parser.parse_args()
    try:
        _do(arguments)
    except HowdahError as error:
        print(f"howdah: {error}", file=sys.stderr)
        raise SystemExit(error.exit_code) from None


def _do(arguments: argparse.Namespace) -> None:
    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    sandbox = Sandbox.open(arguments.run_dir)
    if arguments.command == "up":
        Sandbox(arguments.run_dir, arguments.hadoop, arguments.nodes).up(say)
    elif sandbox is None:
        say("no sandbox here")
    elif arguments.command == "down":
        sandbox.down(arguments.keep, say)
    elif arguments.command == "env":
        print(*(f"export {name}={value}" for name, value in sandbox.env().items()), sep="\n")
    else:
        for daemon in sandbox.status():
            print(daemon)


if __name__ == "__main__":
    main()
