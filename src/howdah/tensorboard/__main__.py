"""`python -m howdah.tensorboard '{"places": {...}, "host": ..., "port": ..., "idle_s": ...}'`: serve TensorBoard
until idle.

`places` are directories (URIs) by the prefix of their runs' names. Instead, `homes` are engine homes (with `*` for any
name) whose jobs are shown: the newest `last` jobs of `users` with `name` in their name. Without both, the directory is
HOWDAH_BOARD_DIR. The token is HOWDAH_BOARD_TOKEN, else HOWDAH_GANG_KEY. Port 0 stands for HOWDAH_PORT, or for any port.
With `attached`, the process ends with its standard input. When TensorBoard is open, a line says
`TensorBoard <version> is ready at <host>:<port>`.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
import types
from collections.abc import Mapping
from typing import Any

from howdah.frameworks import GANG_KEY
from howdah.spec import uris
from howdah.tensorboard.gfile_adapter import ROOT, SCHEME, Directories, GFileTree
from howdah.tensorboard.job_directories import JobDirectories, JobSelection
from howdah.tensorboard.token_middleware import TokenMiddleware
from howdah.tensorboard.wsgi_server import WsgiServer
from howdah.wire.tensorboard_command import READY, VARIABLE, path

IDLE_S, RELOAD_S, TICK_S = 1800.0, 5.0, 0.5


def main(argv: list[str]) -> int:
    request = json.loads(argv[1])
    token = os.environ.pop(VARIABLE, "") or os.environ.pop(GANG_KEY, "")
    if not token:
        print(f"the variable {VARIABLE} is not set: no request could be allowed", file=sys.stderr)
        return 2
    try:
        application = _start(request, token)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "tensorboard":
            raise
        print(f"{sys.executable} has no TensorBoard: `howdah tensorboard` brings one of its own", file=sys.stderr)
        return 3
    idle = float(request.get("idle_s", IDLE_S))
    while not idle or time.monotonic() - application.last_request_at < idle:
        if not request.get("attached"):
            time.sleep(TICK_S)
        elif select.select([sys.stdin], [], [], TICK_S)[0]:
            return 0  # the process that started this one is gone
    print(f"no request for {idle:.0f} s: TensorBoard ends", flush=True)
    return 0


def _start(request: Mapping[str, Any], token: str) -> TokenMiddleware:
    """Start TensorBoard in a thread of its own, and return the application that it serves."""
    # TensorFlow, where it is installed, would read HDFS with a JVM, and needs ten times the memory.
    sys.modules["tensorboard.compat.notf"] = types.ModuleType("tensorboard.compat.notf")
    from tensorboard import default, program, version
    from tensorboard.compat.tensorflow_stub.io import gfile

    applications: list[TokenMiddleware] = []

    class Server(program.TensorBoardServer):  # type: ignore[misc] # its package has no types
        def __init__(self, application: Any, flags: Any) -> None:
            applications.append(TokenMiddleware(application, token))
            self._server = WsgiServer(applications[0], flags.host, flags.port)
            host = f"[{flags.host}]" if ":" in flags.host else flags.host
            self._url = f"http://{host}:{self._server.port}{flags.path_prefix}/"

        def serve_forever(self) -> None:
            self._server.serve_forever()

        def get_url(self) -> str:
            return self._url

    gfile.register_filesystem(SCHEME, GFileTree(_directories(request), str(request.get("conf_dir", ""))))
    tensorboard = program.TensorBoard(default.get_plugins(), server_class=Server)
    host = str(request.get("host", "127.0.0.1"))
    port = int(request.get("port") or os.environ.get("HOWDAH_PORT") or 0)
    tensorboard.configure(
        logdir=ROOT,
        host=host,
        port=port,
        path_prefix=path(token),
        load_fast="false",
        reload_interval=float(request.get("reload_s", RELOAD_S)),
        reload_multifile=True,
        window_title=str(request.get("title", "TensorBoard")),
    )
    address = tensorboard.launch().split("/")[2]
    print(f"TensorBoard {version.VERSION} {READY}{host}:{address.rpartition(':')[2]}", flush=True)
    return applications[0]


def _directories(request: Mapping[str, Any]) -> Directories:
    if "homes" in request:
        users = tuple(str(user) for user in request.get("users", ()))
        selected = JobSelection(users, str(request.get("name", "")), int(request.get("last", 200)))
        return JobDirectories(list(request["homes"]), str(request.get("conf_dir", "")), selected)
    if "places" not in request:
        directory = os.environ["HOWDAH_BOARD_DIR"]
        return lambda: {"": directory if uris.has_scheme(directory) else uris.of_local(directory)}
    fixed = {str(prefix): str(uri) for prefix, uri in request["places"].items()}
    return lambda: fixed


if __name__ == "__main__":
    sys.exit(main(sys.argv))
