"""`TaskImage` brings the image of a task to this node by podman, docker or apptainer, and runs the program in it."""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from typing import Iterable, List, Mapping, Optional, Sequence, Tuple

from howdah.executor.event_loop import EventLoop
from howdah.executor.helper_process import HelperProcess, OnEnd
from howdah.executor.identity import Identity
from howdah.executor.io.program_api_files import ProgramApiDir
from howdah.executor.process.image_program import MARK, ImageProgram, variables_for_image
from howdah.localfiles.container_tools import TOOLS, container_name, find_tool
from howdah.spec import uris
from howdah.spec.message import message
from howdah.wire.helper_messages import ImageFetchRequest
from howdah.wire.messages import Assignment, ImageOrder

_NO_TOOL = "image {image} cannot be run: {node} has no {tool} (setting: container_tool)"
_NO_FILE = "image {image} is not on {node}: {path} does not exist"
_LATE = "image {image} was not ready after {seconds} s"
_FAILED = "image {image} cannot be fetched: {reason}"
_MAX_GRACE_S = 2.0
# Directories of this node that the program makes and writes, or reads, by itself.
_WRITTEN_DIRECTORIES = ("HOWDAH_CHECKPOINT_DIR", "HOWDAH_BOARD_DIR")
_READ_DIRECTORIES = ("HOWDAH_RESUME_FROM",)


class TaskImage:
    """The image that `order` names. `begin` fetches it if it is not here, and `program` makes one run in it."""

    def __init__(self, loop: EventLoop, identity: Identity, order: ImageOrder, container: str, directory: str) -> None:
        self.loop, self.identity, self.order = loop, identity, order
        self.container, self.directory = container, directory
        self.tool = find_tool(order.tool)
        self._numbers = itertools.count(1)
        self._helper: Optional[HelperProcess] = None
        self._words: Tuple[str, ...] = ()
        self._rootless = False

    @classmethod
    def of_order(
        cls, loop: EventLoop, identity: Identity, order: ImageOrder, container: Mapping[str, str], directory: str
    ) -> TaskImage:
        """Return the image of an order; `container` are the executor's variables."""
        return cls(loop, identity, order, container.get(MARK, ""), directory)

    variables = staticmethod(variables_for_image)

    @property
    def _path(self) -> str:
        """Return the path of an image that is a file or a directory of this node; "" if the image is a name."""
        image = self.order.image
        return os.path.realpath(os.path.join(self.directory, image)) if image[:1] in ("/", ".") else ""

    def problem(self) -> str:
        """Return why no program can run in an image on this node; "" if none is known."""
        if self.tool:
            return ""
        tool = self.order.tool or ", ".join(TOOLS)
        return message(_NO_TOOL, image=repr(self.order.image), node=self.identity.host, tool=tool)

    def begin(self, limit_s: float, on_end: OnEnd) -> None:
        """Fetch or load the image if the tool does not have it; `on_end(problem)` is called when that is done."""
        if self._path and not os.path.exists(self._path):
            on_end(message(_NO_FILE, image=repr(self.order.image), node=self.identity.host, path=self._path))
            return
        if not self._path and os.path.basename(self.tool) == "apptainer":  # it fetches images itself, into a cache
            self._words = (f"docker://{self.order.image}",)
            on_end("")
            return

        def ended(problem: str) -> None:
            stopped, answer, self._helper = helper.stop_reason, helper.answer, None
            if problem and not stopped:
                problem = message(_FAILED, image=repr(self.order.image), reason=problem)
            self._words, self._rootless = tuple(answer.get("words", ())), bool(answer.get("rootless"))
            on_end(problem)

        late = message(_LATE, image=repr(self.order.image), seconds=f"{limit_s:.0f}")
        request = ImageFetchRequest(self.tool, self.order.image, self._path)
        argv = ("howdah.executor.image_fetch",)
        self._helper = helper = HelperProcess(
            self.loop, argv, request, ended, limit_s=limit_s, late=lambda: late, grace_s=_MAX_GRACE_S
        )

    def stop(self, grace_s: float) -> None:
        """End what `begin` has started."""
        if self._helper is not None:
            self._helper.stop(min(grace_s, _MAX_GRACE_S), message("the fetching of the image was stopped"))

    def program(
        self,
        assignment: Assignment,
        variables: Mapping[str, str],
        program_api: ProgramApiDir,
        gpus: Sequence[str],
        grace_s: float,
    ) -> ImageProgram:
        """Return a run of the task's command in the image, with these variables and devices. Processes that it leaves
        have `grace_s` seconds between TERM and KILL.

        Raises:
            OSError: a file of the run cannot be written.
        """
        own = self.container or str(os.getpid())
        name = container_name(own, f"{next(self._numbers)}-{time.monotonic_ns() % 1000000}")
        run = ImageProgram(
            self.order,
            self.tool,
            self._words,
            self.directory,
            program_api.path,
            name,
            self.container,
            as_root=self._rootless,
        )
        written = _local_paths(variables.get(variable, "") for variable in _WRITTEN_DIRECTORIES)
        for directory in written:
            with contextlib.suppress(OSError):  # then the program cannot make it either
                os.makedirs(directory, exist_ok=True)
        read = _local_paths(variables.get(variable, "") for variable in _READ_DIRECTORIES)
        listed = _local_paths(uri for found in assignment.placeholder_uris.values() for uri in found)
        if gpus and os.path.basename(self.tool) != "apptainer":
            # The container has these devices alone, and counts them from 0.
            variables = {**variables, "CUDA_VISIBLE_DEVICES": ",".join(str(number) for number in range(len(gpus)))}
        more = [path for path in (self.identity.log_directory, *written, *read, *listed) if os.path.exists(path)]
        run.prepare(assignment.command, variables, more, assignment.memory_mib, gpus, grace_s)
        return run


def _local_paths(names: Iterable[str]) -> List[str]:
    """Return as paths the names that are absolute paths or `file:` URIs."""
    return [uris.path(name) for name in names if name.startswith(("file:", "/"))]
