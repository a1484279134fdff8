"""`python -m howdah.eventfiles --socket PATH`: the curves service, for the program that starts it."""

from __future__ import annotations

import argparse

from howdah.eventfiles.service import IDLE_S, serve


def main() -> None:
    parser = argparse.ArgumentParser(prog="howdah.eventfiles")
    parser.add_argument("--socket", required=True, help="where to listen")
    parser.add_argument("--idle", type=float, default=IDLE_S, help="seconds without a request after which it ends")
    asked = parser.parse_args()
    serve(asked.socket, asked.idle)


if __name__ == "__main__":
    main()
