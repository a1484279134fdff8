"""`python -m howdah.history`: runs the server where howdah's command line is missing, as a task of a job."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from howdah.engines import Engine
from howdah.engines.info import known
from howdah.errors import HowdahError
from howdah.hadoop.conf import user_on
from howdah.history.options import HistoryOptions, ShownCluster, root_of
from howdah.history.server import serve_until_signal
from howdah.localfiles.own_directories import state_directory
from howdah.spec import plugins, prices


def main() -> int:
    """Serve until a signal ends the server; return the exit status."""
    asked = _arguments().parse_args()
    try:
        # Others may read what a task of a job prints, so the link is printed without its token.
        serve_until_signal(
            _options(asked), lambda link: print(link.partition("#")[0] if asked.in_job else link, flush=True)
        )
    except HowdahError as error:
        print(f"howdah history: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m howdah.history", description=__doc__)
    parser.add_argument(
        "--engine",
        choices=[name for name, _ in known()],
        action="append",
        default=[],
        help="whose jobs; may be repeated",
    )
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of the engines")
    parser.add_argument("--root", action="append", default=[], help="URI of a home beside the engines'")
    parser.add_argument("--state", default="", help="directory of the index and the key")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--in-job", action="store_true", help="port, names and key are those of the task it is")
    parser.add_argument("--keep", type=float, default=0.0, metavar="SECONDS", help="how long an ended job is listed")
    parser.add_argument("--remove-files", action="store_true", help="remove its directory, too")
    parser.add_argument("--pause", type=float, default=0.0, metavar="SECONDS", help="how long between two scans")
    parser.add_argument("--prices", default="", metavar="LIST", help="what an hour of each resource costs")
    return parser


def _options(asked: argparse.Namespace) -> HistoryOptions:
    settings = dict(setting.partition("=")[::2] for setting in asked.set)
    conf_dir = settings.get("hadoop_conf_dir", "")
    user = user_on(conf_dir)
    engines: list[Engine] = [plugins.load(info.engine)(settings) for name, info in known() if name in asked.engine]
    clusters = tuple(ShownCluster(engine, root_of(engine, user), conf_dir) for engine in engines)
    if asked.in_job:
        asked.host, asked.port = "0.0.0.0", int(os.environ["HOWDAH_PORT"])  # noqa: S104 - access needs the token, wherever one is
    return HistoryOptions(
        clusters=clusters,
        more_roots=tuple(asked.root),
        state=Path(asked.state or ("history" if asked.in_job else state_directory(os.environ) / "history")),
        conf_dir=conf_dir,
        host=asked.host,
        port=asked.port,
        keep_s=asked.keep,
        remove_files=asked.remove_files,
        names=_host_names() if asked.in_job else (),
        pause_s=asked.pause,
        prices=prices.parse(asked.prices),
        link_command=f"howdah history --on {asked.engine[0]}" if asked.in_job and asked.engine else "howdah history",
    )


def _host_names() -> tuple[str, ...]:
    """Return the names under which the job's other tasks and its page know the host of this task."""
    world = json.loads(os.environ["HOWDAH_WORLD"])
    return tuple({member["host"] for members in world["roles"].values() for member in members})


if __name__ == "__main__":
    sys.exit(main())
