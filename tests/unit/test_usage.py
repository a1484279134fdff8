"""Tests measuring a process tree's resource usage from the kernel, and that of GPUs from NVIDIA's library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from nvml_library import compile_nvml

from howdah.executor.event_loop import EventLoop
from howdah.executor.gpu import monitor
from howdah.executor.process import network_usage
from howdah.executor.process.usage import Meter
from howdah.spec.codec import encode
from howdah.spec.gpu import Gpu
from howdah.wire.launch_messages import OWN_NETWORK

BUSY = """
import os, sys
with open(sys.argv[1], "wb") as file:
    file.write(os.urandom(8 << 20)); file.flush(); os.fsync(file.fileno())
held = bytearray(64 << 20)
end = os.times().user + 0.4
while os.times().user < end: pass
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def busy(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    argv = [sys.executable, "-c", BUSY, str(tmp_path / "written")]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield process
        process.stdin.close()  # type: ignore[union-attr]


def test_memory_cpu_and_disk_of_a_tree(busy: subprocess.Popen[bytes]) -> None:
    meter = Meter(busy.pid)
    assert busy.stdout is not None
    busy.stdout.readline()
    meter.sample(0.25)
    usage = meter.usage
    assert usage.memory_mib > 64
    assert usage.cpu_s >= 0.3
    assert usage.progress == 0.25
    assert usage.network == "node"
    if Path("/proc/self/io").exists():
        assert usage.written_mib >= 8
        assert usage.written_mib_s > 0
    meter.sample()
    assert meter.usage.cpu_s <= usage.cpu_s + 0.1
    assert meter.usage.written_mib == usage.written_mib
    assert meter.usage.peak_mib >= meter.usage.memory_mib


def test_a_tree_that_is_gone_stands_still() -> None:
    program = "sum(range(10**6)); print('ready', flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        meter = Meter(process.pid)
        assert process.stdout is not None
        process.stdout.readline()
        meter.sample()
        process.communicate(b"\n", timeout=60)
    before = meter.usage
    meter.sample()
    assert meter.usage.cpu_s >= before.cpu_s
    assert meter.usage.memory_mib == 0
    meter.note_end(2048, 1.0, 0.5)
    assert meter.usage.peak_mib >= 2


def test_looking_takes_a_small_share_of_a_core() -> None:
    meter = Meter(os.getpid(), lambda: [os.getpid()] * 500)
    began = time.thread_time()
    meter.sample()
    assert meter.period >= max(2.0, 190 * (time.thread_time() - began) / 1.5)


def test_a_network_is_a_tasks_own_only_where_its_engine_says_so() -> None:
    assert not network_usage.is_own({})
    assert not network_usage.is_own({OWN_NETWORK: ""})
    received, sent = network_usage.NetworkUsage(os.getpid()).totals()
    assert received >= 0 <= sent
    assert network_usage.NetworkUsage(1 << 22).totals() == (0.0, 0.0)


@pytest.mark.parametrize(
    ("given", "ids"),
    [
        ({}, ()),
        ({"CUDA_VISIBLE_DEVICES": "0,3"}, ("0", "3")),
        ({"CUDA_VISIBLE_DEVICES": ""}, None),
        ({"NVIDIA_VISIBLE_DEVICES": "GPU-abc"}, ("GPU-abc",)),
        ({"NVIDIA_VISIBLE_DEVICES": "void"}, None),
        ({"NVIDIA_VISIBLE_DEVICES": "all"}, ()),
        ({"CUDA_VISIBLE_DEVICES": "-1"}, None),
    ],
)
def test_visible_devices_are_those_of_the_variables(given: dict[str, str], ids: tuple[str, ...] | None) -> None:
    assert monitor.visible_devices(given) == ids


def gpus(request: object, library: str = "") -> subprocess.Popen[bytes]:
    environment = {**os.environ, **({"LD_LIBRARY_PATH": library} if library else {})}
    argv = [sys.executable, "-m", "howdah.executor.gpu.sampler"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = subprocess.Popen(argv, env=environment, **pipes)  # type: ignore[call-overload]
    process.stdin.write(json.dumps(request).encode())
    process.stdin.close()
    found: subprocess.Popen[bytes] = process
    return found


def test_without_a_driver_there_is_one_sentence() -> None:
    with gpus({"ids": []}) as process:
        assert process.stdout is not None
        answer = json.loads(process.stdout.readline())
        if "gpus" in answer:  # this machine has some
            process.kill()
        else:
            assert "GPUs" in answer["error"]
    assert process.returncode in (1, -9)


STUB = r"""
#include <string.h>
#include <unistd.h>
typedef struct { unsigned gpu, memory; } use;
typedef struct { unsigned long long total, free, used; } memory;
typedef struct { void *device; unsigned long long type, data; unsigned a, b; } event;
static int devices[2], told;
int nvmlInit_v2(void) { return 0; }
int nvmlInitWithFlags(unsigned f) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **h) { if (i > 1) return 2; *h = &devices[i]; return 0; }
int nvmlDeviceGetHandleByUUID(const char *u, void **h) { if (strcmp(u, "GPU-1")) return 6; *h = &devices[1]; return 0; }
int nvmlDeviceGetIndex(void *h, unsigned *i) { *i = (int *)h - devices; return 0; }
int nvmlDeviceGetUUID(void *h, char *s, unsigned n) { strncpy(s, h == devices ? "GPU-0" : "GPU-1", n); return 0; }
int nvmlDeviceGetName(void *h, char *s, unsigned n) { strncpy(s, "Stub", n); return 0; }
int nvmlDeviceGetUtilizationRates(void *h, use *u) { u->gpu = h == devices ? 75 : 0; return 0; }
int nvmlDeviceGetMemoryInfo(void *h, memory *m) { m->total = 80ull << 30; m->used = 3ull << 20; return 0; }
int nvmlDeviceGetTemperature(void *h, int w, unsigned *t) { *t = 61; return 0; }
int nvmlDeviceGetPowerUsage(void *h, unsigned *p) { if (h != devices) return 3; *p = 250500; return 0; }
int nvmlDeviceGetTotalEccErrors(void *h, int k, int c, unsigned long long *n) { *n = 1; return 0; }
int nvmlEventSetCreate(void **s) { *s = &told; return 0; }
int nvmlDeviceRegisterEvents(void *h, unsigned long long t, void *s) { return 0; }
int nvmlEventSetWait_v2(void *s, event *e, unsigned ms) {
  if (told++) { usleep(ms * 1000); return 10; }
  e->device = &devices[1]; e->type = 8; e->data = 79; return 0;
}
const char *nvmlErrorString(int r) { return "stub says no"; }
"""


@pytest.fixture(scope="module")
def stub(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A library with NVIDIA's names: two devices, of which the second tells no power and reports XID 79."""
    return compile_nvml(tmp_path_factory.mktemp("nvml"), STUB)


def test_what_the_devices_tell(stub: str) -> None:
    with gpus({"ids": ["0", "GPU-1"], "period_s": 0.05}, stub) as process:
        assert process.stdout is not None
        samples = [json.loads(process.stdout.readline())["gpus"] for _ in range(3)]
        process.kill()
    first, second = samples[-1]
    assert first == {
        **{"id": "0", "name": "Stub", "use": 0.75, "memory_mib": 3.0, "total_mib": 81920.0},
        **{"celsius": 61.0, "watts": 250.5, "ecc": 1},
    }
    assert (second["id"], second["use"], second["xids"], second["xid"]) == ("GPU-1", 0.0, 1, 79)
    assert "watts" not in second


def test_memory_errors_count_from_the_first_count_that_is_told() -> None:
    watch = monitor.GpuMonitor(EventLoop(), {"CUDA_VISIBLE_DEVICES": ""}, lambda _: None)
    for ecc, fault in ((None, ""), (3, ""), (5, "GPU 0: 2 uncorrected memory errors (ECC)")):
        watch._sampled({"gpus": [encode(Gpu("0", ecc=ecc))]})
        assert watch.fault == fault


def test_a_device_that_is_not_there_is_told_of(stub: str) -> None:
    with gpus({"ids": ["7"]}, stub) as process:
        assert process.stdout is not None
        assert "can't be measured" in json.loads(process.stdout.readline())["error"]
