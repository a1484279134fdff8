"""How an executor finds out whether a NodeManager runs it in the job's image, and the messages if it does not.

A NodeManager with Hadoop's DefaultContainerExecutor starts the task as a plain process of the node without a message.
(LinuxContainerExecutor refuses what it does not allow, in recent versions: howdah.engines.yarn.exit_codes.) Hadoop's
Docker and runc runtimes mount the application's local directories, or the container's working directory (2.8 to 3.0),
and the container's log directories, each by its own path. On a node nothing is ever mounted there, and the NodeManager
is an ancestor of its containers' processes.
"""

from __future__ import annotations

from collections.abc import Mapping

from howdah.spec.containers import TYPE, requested_image
from howdah.spec.message import message
from howdah.wire.messages import ImageCheck

NOT_USED = (
    "image {image} is not used: the NodeManager of {node} started the task outside of a container; its administrator "
    "has to name {runtime} in yarn.nodemanager.runtime.linux.allowed-runtimes, and LinuxContainerExecutor in "
    "yarn.nodemanager.container-executor.class"
)
UNKNOWN = "it is unknown whether image {image} is used: none of its directories is mounted, and no NodeManager is seen"
_NODEMANAGER = "org.apache.hadoop.yarn.server.nodemanager.NodeManager"


def nodemanager_check(variables: Mapping[str, str], host: str) -> ImageCheck:
    """Return the check of an executor on `host`, whose container's `variables` ask for an image."""
    image = repr(requested_image(variables))
    return ImageCheck(
        mounted=("LOCAL_DIRS", "LOG_DIRS"),
        outside=_NODEMANAGER,
        not_used=message(NOT_USED, image=image, node=host, runtime=variables[TYPE]),
        unknown=message(UNKNOWN, image=image),
    )
