"""`python -m howdah.tensorboard '{"places": {...}, "host": ..., "port": ..., "idle_s": ...}'`: serve TensorBoard
until idle.

`places` are directories (URIs) by what their runs' names begin with; or `homes`, engine homes (with `*` for any name)
whose jobs are shown, the newest `last` of `users` with `name` in their name; or neither, and HOWDAH_BOARD_DIR. The
token is HOWDAH_BOARD_TOKEN, else HOWDAH_GANG_KEY. Port 0 takes HOWDAH_PORT, or any; one that is `attached` ends with
its standard input. When it is open a line says `TensorBoard <version> is ready at <host>:<port>`.
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
from howdah.tensorboard.gfile_adapter import ROOT, SCHEME, GFileTree, Places
from howdah.tensorboard.job_directories import Chosen, JobDirectories
from howdah.tensorboard.token_middleware import TokenMiddleware
from howdah.tensorboard.wsgi_server import WsgiServer
from howdah.wire.tensorboard_link import READY, VARIABLE, path

IDLE_S, RELOAD_S, LOOK_S = 1800.0, 5.0, 0.5


def main(argv: list[str]) -> int:
    request = json.loads(argv[1])
    token = os.environ.pop(VARIABLE, "") or os.environ.pop(GANG_KEY, "")
    if not token:
        print(f"the variable {VARIABLE} is not set: nobody could be let in", file=sys.stderr)
        return 2
    try:
        door = _open(request, token)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "tensorboard":
            raise
        print(f"{sys.executable} has no TensorBoard: `howdah tensorboard` brings one of its own", file=sys.stderr)
        return 3
    idle = float(request.get("idle_s", IDLE_S))
    while not idle or time.monotonic() - door[0].asked_at < idle:
        if not request.get("attached"):
            time.sleep(LOOK_S)
        elif select.select([sys.stdin], [], [], LOOK_S)[0]:
            return 0  # who started it is gone
    print(f"nobody has looked for {idle:.0f} s: this TensorBoard ends", flush=True)
    return 0


def _open(request: Mapping[str, Any], token: str) -> list[TokenMiddleware]:
    # TensorFlow, where it is installed, would read HDFS with a JVM, and needs ten times the memory.
    sys.modules["tensorboard.compat.notf"] = types.ModuleType("tensorboard.compat.notf")
    from tensorboard import default, program, version
    from tensorboard.compat.tensorflow_stub.io import gfile

    doors: list[TokenMiddleware] = []

    class Server(program.TensorBoardServer):  # type: ignore[misc] # its package has no types
        def __init__(self, application: Any, flags: Any) -> None:
            doors.append(TokenMiddleware(application, token))
            self._server = WsgiServer(doors[0], flags.host, flags.port)
            host = f"[{flags.host}]" if ":" in flags.host else flags.host
            self._url = f"http://{host}:{self._server.port}{flags.path_prefix}/"

        def serve_forever(self) -> None:
            self._server.serve_forever()

        def get_url(self) -> str:
            return self._url

    gfile.register_filesystem(SCHEME, GFileTree(_places(request), str(request.get("conf_dir", ""))))
    board = program.TensorBoard(default.get_plugins(), server_class=Server)
    host = str(request.get("host", "127.0.0.1"))
    port = int(request.get("port") or os.environ.get("HOWDAH_PORT") or 0)
    board.configure(
        logdir=ROOT,
        host=host,
        port=port,
        path_prefix=path(token),
        load_fast="false",
        reload_interval=float(request.get("reload_s", RELOAD_S)),
        reload_multifile=True,
        window_title=str(request.get("title", "TensorBoard")),
    )
    address = board.launch().split("/")[2]
    print(f"TensorBoard {version.VERSION} {READY}{host}:{address.rpartition(':')[2]}", flush=True)
    return doors


def _places(request: Mapping[str, Any]) -> Places:
    if "homes" in request:
        users = tuple(str(user) for user in request.get("users", ()))
        chosen = Chosen(users, str(request.get("name", "")), int(request.get("last", 200)))
        return JobDirectories(list(request["homes"]), str(request.get("conf_dir", "")), chosen, _notice)
    if "places" not in request:
        where = os.environ["HOWDAH_BOARD_DIR"]
        return lambda: {"": where if uris.has_scheme(where) else uris.of_local(where)}
    fixed = {str(name): str(uri) for name, uri in request["places"].items()}
    return lambda: fixed


def _notice(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
