"""A script with the checks that need the job's own torch.

It has a main function of its own, because the job's Python gets nothing else of howdah: `torch_probe` hands the text
of this file to it.

Every expected result is known beforehand, and exact: small whole numbers, whatever the precision.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from typing import Any, Dict, List, Mapping, Optional

_SIZE, _CPU_SIZE, _TIMES = 4096, 512, 10
_ELEMENTS = 1 << 20


def matmul(torch: Any, request: Mapping[str, Any]) -> Dict[str, Any]:
    """Multiply matrices with a known product on each GPU, or on the CPU."""
    wanted = int(request["gpus"])
    if not wanted:
        problem = _multiply(torch, "cpu", _CPU_SIZE)
        return {"error": problem} if problem else {"found": "the CPU multiplies correctly"}
    if not torch.version.cuda and not getattr(torch.version, "hip", None):
        return {"left_out": "the job's torch is built for CPUs"}
    there = torch.cuda.device_count()
    if there < wanted:
        return {"error": f"torch sees {there} GPUs, wanted {wanted}"}
    began = time.monotonic()
    problems = [_multiply(torch, f"cuda:{number}", _SIZE) for number in range(wanted)]
    problem = next(filter(None, problems), "")
    rate = 2.0 * _SIZE**3 * _TIMES * wanted / (time.monotonic() - began) / 1e12
    names = ", ".join(sorted({torch.cuda.get_device_name(number) for number in range(wanted)}))
    return {"error": problem} if problem else {"found": f"{wanted} GPUs ({names}), {rate:.0f} TFLOP/s"}


def _multiply(torch: Any, device: str, size: int) -> str:
    """Return what is wrong with the product of two matrices of rank one: (a bᵀ)(c dᵀ) = a (b·c) dᵀ."""
    a, b, c, d = (((torch.arange(size) * step) % 5 - 2).float() for step in (1, 2, 3, 7))
    expected = torch.outer(a * (b * c).sum(), d).to(device)
    left, right = torch.outer(a, b).to(device), torch.outer(c, d).to(device)
    for number in range(_TIMES):
        wrong = int((left @ right != expected).sum().item())
        if wrong:
            return f"{device}: {wrong} of {size * size} elements of product {number + 1} are wrong, wanted 0"
    return ""


def all_reduce(torch: Any, request: Mapping[str, Any]) -> Dict[str, Any]:
    """Add up the same numbers on two tasks, on their first GPUs or on their CPUs."""
    dist = importlib.import_module("torch.distributed")
    if not dist.is_available():
        return {"left_out": "the job's torch has no torch.distributed"}
    gpu = bool(request["gpu"])
    if gpu and not (torch.cuda.is_available() and dist.is_nccl_available()):
        return {"error": "torch sees no GPU, or has no NCCL, wanted both"}
    from datetime import timedelta  # only for this

    meeting = f"tcp://{request['host']}:{request['port']}"
    rank, limit = int(request["rank"]), timedelta(seconds=float(request["limit_s"]))
    dist.init_process_group("nccl" if gpu else "gloo", meeting, limit, world_size=2, rank=rank)
    device = "cuda:0" if gpu else "cpu"
    numbers = (torch.arange(_ELEMENTS) % 1000).float().to(device)
    began = time.monotonic()
    for _ in range(3):
        total = numbers * (rank + 1)
        dist.all_reduce(total)
        wrong = int((total != numbers * 3).sum().item())
        if wrong:
            return {"error": f"{wrong} of {_ELEMENTS} sums are wrong, wanted 0"}
    rate = 3 * 4 * _ELEMENTS / (time.monotonic() - began) / (1 << 20)
    return {"found": f"{'NCCL' if gpu else 'Gloo'} {rate:.0f} MiB/s"}


def main(argv: Optional[List[str]] = None) -> Dict[str, Any]:
    """Make one check, given in JSON; return `found`, `left_out` or `error`."""
    request = json.loads((argv or sys.argv)[1])
    try:
        torch = importlib.import_module("torch")
    except ModuleNotFoundError as error:
        return {"left_out": f"the job's Python has no torch ({error})"}
    except (ImportError, OSError) as error:
        return {"error": f"torch can't be imported: {error}"}
    try:
        return (matmul if request["check"] == "matmul" else all_reduce)(torch, request)
    except (RuntimeError, ValueError) as error:
        return {"error": " ".join(str(error).split())[:300]}


if __name__ == "__main__":
    print(json.dumps(main()), flush=True)
