"""Starts a master in its pod, which has nothing of the job but a Secret and the bootstrap archive.

The text of this module is a file of the Secret: it brings howdah into the pod, and starts the master. Files on an
object store have signed URLs, because the libraries that read the store come with howdah.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
import zlib
from pathlib import Path
from typing import Any

NAME, ARGUMENTS, SIGNED = "start.py", "arguments.json", "signed.json"
TRIES, AGAIN_S, ANSWER_S = 5, 2.0, 60.0


def main() -> None:
    """Unpack howdah and its page, and run `python -m howdah.master`."""
    sys.path.insert(0, os.environ["HOWDAH_BOOTSTRAP"])
    from howdah.spec import uris
    from howdah.spec.codec import decode
    from howdah.spec.staged import IMPORT_PATH, PAGE, StagedJob
    from howdah.staging.working_directory import prepare
    from howdah.wire import credentials

    directory = Path.cwd()
    files = directory / "master"
    given = Path(__file__).parent
    arguments, signed = (json.loads((given / name).read_text()) for name in (ARGUMENTS, SIGNED))

    def bring(uri: str) -> str:
        return download(uri, signed, directory / "downloads") if uri in signed["urls"] else uri

    held = credentials.load(os.environ["HOWDAH_CREDENTIALS"]).secrets
    if "--job" in arguments:
        arguments["--job"] = uris.path(bring(arguments["--job"]))
        text = Path(arguments["--job"]).read_bytes()
    else:
        text = zlib.decompress(held[credentials.JOB])
    staged = decode(StagedJob, json.loads(text))
    own_files = (dataclasses.replace(file, uri=bring(file.uri)) for file in (*staged.runtime, *staged.page))
    prepare(files, tuple(own_files), directory / "cache")
    host = os.environ["HOWDAH_HOST"]
    own = {"PYTHONPATH": str(files / IMPORT_PATH), "HOWDAH_LISTEN": "::" if ":" in host else "0.0.0.0"}  # noqa: S104 - of a pod
    if any(file.name == PAGE for file in staged.page):
        own["HOWDAH_PAGE"] = str(files / PAGE)
    python = str(files / staged.python) if staged.python.startswith(".") else staged.python
    command = [python, "-m", "howdah.master", *(word for pair in arguments.items() for word in pair)]
    sys.exit(run(command, files, {**os.environ, **own}, int(os.environ["HOWDAH_MASTER_ATTEMPTS"])))


def download(uri: str, signed: dict[str, Any], directory: Path) -> str:
    """Download a file by its signed URL; return the URI of the copy. End the process, with the reason, if the store
    does not give it."""
    directory.mkdir(exist_ok=True)
    path = directory / uri.rpartition("/")[2]
    left = TRIES
    while True:
        try:
            with urllib.request.urlopen(signed["urls"][uri], timeout=ANSWER_S) as answer, path.open("wb") as file:  # noqa: S310
                shutil.copyfileobj(answer, file)
                if answer.length:
                    raise ConnectionResetError(f"{answer.length} bytes are missing")
            return path.as_uri()
        except OSError as error:
            left -= 1
            if time.time() > signed["until"]:
                days = f"{signed['valid_s'] / 86400:g} days"
                sys.exit(f"a master can start for {days} after a job was submitted, and they are over: {uri}: {error}")
            if not left or getattr(error, "code", 500) < 500:
                sys.exit(f"the object store does not give what a master needs: {uri}: {error}")
        time.sleep(AGAIN_S)


def run(command: list[str], directory: Path, environment: dict[str, str], attempts: int) -> int:
    """Run a master; return its status. A master that is killed is followed by another at once, up to `attempts` in all:
    the cluster starts another pod only ten seconds later, and executors wait for a master not much longer than that."""
    told: list[int] = []
    while True:
        master = subprocess.Popen(command, cwd=directory, env=environment)

        def forward(number: int, _: object, master: subprocess.Popen[bytes] = master) -> None:
            told.append(number)
            master.send_signal(number)

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, forward)
        status, attempts = master.wait(), attempts - 1
        if status >= 0 or told or not attempts:
            return status if status >= 0 else 128 - status


if __name__ == "__main__":
    main()
