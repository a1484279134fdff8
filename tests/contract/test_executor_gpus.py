"""Tests that a program ends with the GPU's failure as its reason; a stub replaces NVIDIA's library."""

from __future__ import annotations

import pytest
from conductor import Conductor
from nvml_library import compile_nvml
from test_executor import Start, conduct, program

from howdah.executor.gpu.monitor import find_hardware_fault
from howdah.spec.gpu import HARDWARE, Gpu
from howdah.wire.messages import Goal, Phase, Status

__all__ = ["conduct"]
# One device; its driver tells of the errors in $XIDS, one after the other, and of as many uncorrected memory errors as
# there have been questions when there are none.
STUB = r"""
#include <stdlib.h>
#include <unistd.h>
typedef struct { void *device; unsigned long long type, data; unsigned a, b; } event;
static int device, asked;
static char *next;
int nvmlInitWithFlags(unsigned f) { next = getenv("XIDS"); return 0; }
int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **h) { *h = &device; return i == 3 ? 0 : 2; }
int nvmlDeviceGetIndex(void *h, unsigned *i) { *i = 3; return 0; }
int nvmlDeviceGetUUID(void *h, char *s, unsigned n) { s[0] = 'G'; s[1] = 0; return 0; }
int nvmlDeviceGetMemoryInfo(void *h, void *m) { return getenv("LOST") ? 15 : 3; }
int nvmlDeviceGetTotalEccErrors(void *h, int k, int c, unsigned long long *n) {
  *n = *getenv("XIDS") ? 7 : 7 + asked++; return 0;
}
int nvmlEventSetCreate(void **s) { *s = &device; return 0; }
int nvmlDeviceRegisterEvents(void *h, unsigned long long t, void *s) { return 0; }
int nvmlEventSetWait_v2(void *s, event *e, unsigned ms) {
  if (!*next) { usleep(ms * 1000); return 10; }
  e->device = &device; e->type = 8; e->data = strtoul(next, &next, 10); return 0;
}
const char *nvmlErrorString(int r) { return "stub says no"; }
"""
WAITS = "import pathlib, sys, time\nwhile not pathlib.Path('go').exists(): time.sleep(0.02)\nsys.exit(3)"


@pytest.fixture(scope="module")
def stub(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A directory with a library of NVIDIA's name."""
    return compile_nvml(tmp_path_factory.mktemp("nvml"), STUB)


def ended(master: Conductor, stub: str, count: int, **variables: str) -> Status:
    """How the program ends once the executor has told of so many XIDs and of memory errors."""
    gpu = {"HOWDAH_GPU_COUNT": "4", "CUDA_VISIBLE_DEVICES": "3", "LD_LIBRARY_PATH": stub, "XIDS": "", **variables}
    master.start(gpu)
    master.phase(Phase.JOINED)
    master.set_orders(Goal.RUN)
    master.until(lambda said: said.usage.gpus and said.usage.gpus[0].xids >= count and _more(said, count))
    (master.work / "go").touch()
    return master.phase(Phase.ENDED)


def _more(said: Status, count: int) -> bool:
    return bool(count) or (said.usage.gpus[0].ecc or 0) > 7 or bool(said.usage.gpus[0].fault)


class TestPrograms:
    def test_hardware_that_failed_explains_the_end(self, conduct: Start, stub: str) -> None:
        said = ended(conduct(program(WAITS)), stub, 3, XIDS="31 79 45")
        assert said.exit is not None
        assert (said.exit.cause, said.exit.code) == ("gpu", 3)
        assert said.exit.detail == "GPU 3: XID 79, it has fallen off the bus; exit code 3"

    def test_errors_of_the_programs_own_explain_nothing(self, conduct: Start, stub: str) -> None:
        said = ended(conduct(program(WAITS)), stub, 4, XIDS="13 31 43 45")
        assert said.exit is not None
        assert (said.exit.cause, said.exit.detail) == ("exit", "")

    def test_memory_errors_are_counted_from_the_programs_start(self, conduct: Start, stub: str) -> None:
        said = ended(conduct(program(WAITS)), stub, 0)
        assert said.exit is not None
        assert said.exit.cause == "gpu"
        assert "uncorrected memory errors (ECC); exit code 3" in said.exit.detail

    def test_a_device_that_is_gone_needs_no_event(self, conduct: Start, stub: str) -> None:
        said = ended(conduct(program(WAITS)), stub, 0, LOST="1")
        assert said.exit is not None
        assert said.exit.detail.startswith("GPU 3: XID 79")

    def test_a_program_that_ends_well_has_ended_well(self, conduct: Start, stub: str) -> None:
        said = ended(conduct(program(WAITS.replace("exit(3)", "exit(0)"))), stub, 1, XIDS="79")
        assert said.exit is not None
        assert said.exit.ok


def test_what_is_the_hardwares() -> None:
    assert {48, 62, 64, 74, 79, 94, 95, 119, 120, 140} <= HARDWARE.keys()
    assert not {8, 13, 31, 32, 43, 45, 63, 68, 69, 92, 109} & HARDWARE.keys()


def test_old_memory_errors_are_not_this_programs() -> None:
    assert find_hardware_fault([Gpu("0", ecc=2)], {"0": 2}) == ""
    assert (
        find_hardware_fault([Gpu("0", ecc=2), Gpu("1", ecc=5)], {"0": 2, "1": 4})
        == "GPU 1: 1 uncorrected memory errors (ECC)"
    )
    assert find_hardware_fault([Gpu("0", xids=3, xid=45)], {}) == ""
