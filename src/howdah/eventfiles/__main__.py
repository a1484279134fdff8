"""Runs the event-file service for the program that starts it: `python -m howdah.eventfiles --socket PATH`."""

from __future__ import annotations

import argparse

from howdah.eventfiles.service import IDLE_S, serve


def main() -> None:
    parser = argparse.ArgumentParser(prog="howdah.eventfiles")
    parser.add_argument("--socket", required=True, help="where to listen")
    parser.add_argument("--idle", type=float, default=IDLE_S, help="seconds without a request after which it ends")
    arguments = parser.parse_args()
    serve(arguments.socket, arguments.idle)


if __name__ == "__main__":
    main()
