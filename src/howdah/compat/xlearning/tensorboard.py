"""Makes TensorBoard of an XLearning job; it ran beside one worker and showed the worker's directory.

VisualDL's logs have another format: for a directory on the cluster VisualDL still runs in a container of its own.
"""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Mapping

from howdah.compat.xlearning.app_types import TENSORFLOWS
from howdah.compat.xlearning.roles import JobRoles
from howdah.compat.xlearning.settings import PAGE, XLearningSettings
from howdah.spec import Board, Resources, Role

NAME = "tensorboard"
_MIN_S = 1
_SHOWN = ("tf.board.log.dir", "tf.board.history.dir", "board.modelpb")


def log_directory(settings: XLearningSettings) -> tuple[str, bool]:
    """Return the directory of the logs, and whether it is on the cluster. A path that begins with `/` was on the
    cluster, too."""
    directory = settings.text("tf.board.log.dir", "eventLog")
    return directory, "://" in directory or directory.startswith("/")


def tensorboard_settings(settings: XLearningSettings, job_roles: JobRoles, kind: str, unasked: bool) -> Board:
    """Return TensorBoard for the worker that had it, or for the directory on the cluster. With `unasked` it was on by
    default; here it is not, and only the directory of its logs is made."""
    directory, is_on_cluster = log_directory(settings)
    if unasked and kind in TENSORFLOWS and not settings.given("tf.board.enable"):
        settings.notes.append("--board-enable isn't given: there is no TensorBoard, where xl-submit started one")
    elif unasked and not settings.given("tf.board.enable") and any(map(settings.given, _SHOWN)):
        settings.notes.append(
            f"--board-enable isn't given: nothing shows or keeps {directory}, where xl-submit started VisualDL"
        )
    if not settings.flag("tf.board.enable") or ("://" in directory and kind not in TENSORFLOWS):
        return Board()
    if is_on_cluster and kind in TENSORFLOWS:
        return Board(directory, show=True)
    if kind not in TENSORFLOWS:
        settings.notes.append(
            f"--board-enable: TensorBoard shows {directory}, so event files, not VisualDL's own logs ({PAGE})"
        )
    history = settings.text("tf.board.history.dir")
    every = settings.number("tf.board.reload.interval", int(Board.every_s))
    return Board(
        posixpath.join(history, "{job}") if history else "",
        local=directory,
        every_s=max(_MIN_S, every),
        tasks=_shown_task(settings, job_roles),
        show=True,
    )


def _shown_task(settings: XLearningSettings, job_roles: JobRoles) -> str:
    """Return the task of --board-index. If there is a single worker, both systems used it, whatever the index was."""
    if settings.number("worker.num", 1) == 1:
        return job_roles.trainer_names[0]
    return job_roles.trainer(settings, "tf.board.worker.index")


def role(settings: XLearningSettings, kind: str) -> Mapping[str, Role]:
    """Return VisualDL's role, if TensorBoard is on and its directory is on the cluster."""
    directory, _ = log_directory(settings)
    if not settings.flag("tf.board.enable") or "://" not in directory or kind in TENSORFLOWS:
        return {}
    model = settings.text("board.modelpb")
    shown = f" --model_pb {shlex.quote(model)}" if model else ""
    where = f'--host 0.0.0.0 --port "$HOWDAH_PORT" --logdir {shlex.quote(directory)}'
    command = f"exec visualDL {where} --cache_timeout {settings.number('board.cache.timeout', 20)}{shown}"
    return {NAME: Role(command, resources=Resources(1024))}
