"""XGBoost's collective: workers that find each other through a tracker, which is a role of its own.

The tracker is that of the user's own XGBoost (`xgboost.tracker.RabitTracker`), because its protocol with the workers
differs between versions; `tracker` runs it in the job's environment. A job that has a role of this name keeps it.
"""

from __future__ import annotations

from howdah.frameworks.group import group, grouped, with_helper
from howdah.spec import JobSpec, TaskId, World
from howdah.spec.task import SIDE_ROLES

TRACKER = "tracker"
_TRACKER_MIB = 256
# Ranks go by task ids. The C library alone is small and starts at once. The Python package imports NumPy and SciPy
# first, and workers that find no tracker pause for seconds before they try again. XGBoost before 2.1 has a tracker in
# Python only.
_PROGRAM = """\
import ctypes, importlib.util, json, os, pathlib
workers, host, port = int(os.environ["DMLC_NUM_WORKER"]), os.environ["DMLC_TRACKER_URI"], int(os.environ["HOWDAH_PORT"])
found = importlib.util.find_spec("xgboost")
if not found or not found.origin:
    raise SystemExit("the job's Python environment has no xgboost package, whose tracker this task runs")
spec = importlib.util.spec_from_file_location("libpath", pathlib.Path(found.origin).parent / "libpath.py")
libpath = importlib.util.module_from_spec(spec)
spec.loader.exec_module(libpath)
library, tracker = ctypes.CDLL(libpath.find_lib_path()[0]), ctypes.c_void_p()
library.XGBGetLastError.restype = ctypes.c_char_p
def call(name, *arguments):
    if getattr(library, name)(*arguments):
        raise SystemExit(library.XGBGetLastError().decode())
if hasattr(library, "XGTrackerCreate"):
    meeting = {"dmlc_communicator": "rabit", "host": host, "port": port, "n_workers": workers, "sortby": 1}
    call("XGTrackerCreate", json.dumps(meeting).encode(), ctypes.byref(tracker))
    call("XGTrackerRun", tracker, b"{}")
    finish = lambda: call("XGTrackerWaitFor", tracker, b"{}")
else:
    from xgboost.tracker import RabitTracker
    tracker = RabitTracker(host_ip=host, n_workers=workers, port=port, sortby="task")
    tracker.start(workers)
    finish = tracker.join
print(f"tracker for {workers} workers at {host}:{port}", flush=True)
finish()
"""


class XGBoost:
    """Runs data-parallel training: each worker loads its own rows."""

    # Neither the tracker nor the workers set SO_REUSEADDR before they bind.
    hold_ports = False

    def expand(self, job: JobSpec) -> JobSpec:
        """Add the tracker, unless each task is alone anyway."""
        if job.gang:
            job = with_helper(job, TRACKER, ("python3", "-c", _PROGRAM), _TRACKER_MIB)
        return grouped(job, helpers=(TRACKER,))

    def environment(self, world: World, task: TaskId) -> dict[str, str]:
        """Return the tracker's address for the tasks of its stage; tasks of other stages have no tracker."""
        tracker = next(iter(world.members_of(TRACKER)), None)
        if tracker is None:
            return {}
        workers = len(group(world, helpers=(TRACKER,)))
        meeting = {
            "DMLC_TRACKER_URI": tracker.numeric,
            "DMLC_TRACKER_PORT": str(tracker.ports["main"]),
            "DMLC_NUM_WORKER": str(workers),
            "DMLC_NUM_SERVER": "0",
        }
        if task.role in (TRACKER, *SIDE_ROLES):
            return meeting
        # Ids are compared as text: equally long ones sort like the numbers they are.
        number = str(world.rank(task)).zfill(len(str(workers - 1)))
        return {**meeting, "DMLC_ROLE": "worker", "DMLC_TASK_ID": number}
