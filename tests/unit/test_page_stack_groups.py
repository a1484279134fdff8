"""Tests which tasks the page shows together because their programs have the same stacks."""

from __future__ import annotations

from page_script import called

PYTHON = """Process {pid}: python train.py --rank {rank}
Python v{version} (/containers/{rank}/bin/python3)

Thread {pid} ({state}): "MainThread"
    {frame}
    <module> (train.py:40)
Thread 0x7F{rank}A ({state}): "Thread-{rank} (pin_memory)"
    wait (threading.py:312)
"""
KERNEL = """Process {pid}: sleep {pid}
What the kernel says of its threads:
    {pid} sleep: {state} {place}
"""


def python_stack(
    rank: int, frame: str = "all_reduce (group.py:7)", state: str = "idle", version: str = "3.11.7"
) -> str:
    return PYTHON.format(pid=900 + rank, rank=rank, frame=frame, state=state, version=version)


def kernel_stack(pid: int, place: str, state: str = "sleeps") -> str:
    return KERNEL.format(pid=pid, place=place, state=state)


def groups(stacks: dict[str, str]) -> list[list[str]]:
    (found,) = called("job/groupStacks.ts", "groupStacks", [stacks])
    assert all(group["text"] == stacks[group["tasks"][0]] for group in found)
    return [group["tasks"] for group in found]


def test_tasks_with_the_same_stacks_are_together_and_the_odd_one_is_first() -> None:
    stacks = {f"worker:{rank}": python_stack(rank) for rank in range(5)}
    stacks["worker:1"] = python_stack(1, state="active+gil")
    stacks["worker:3"] = python_stack(3, frame="read (data.py:12)")
    assert groups(stacks) == [["worker:3"], ["worker:0", "worker:1", "worker:2", "worker:4"]]


def test_another_line_or_another_thread_is_another_stack() -> None:
    assert len(groups({"w:0": python_stack(0), "w:1": python_stack(1, frame="all_reduce (group.py:8)")})) == 2
    assert len(groups({"w:0": python_stack(0), "w:1": python_stack(1) + 'Thread 5 (idle): "x"\n    a (b.py:1)\n'})) == 2


def test_another_version_of_python_is_another_stack() -> None:
    assert len(groups({"w:0": python_stack(0), "w:1": python_stack(1, version="3.12.1")})) == 2


def test_the_order_of_threads_and_processes_does_not_count() -> None:
    one, other = python_stack(0), kernel_stack(7, "hrtimer_nanosleep")
    assert groups({"w:0": one + "\n" + other, "w:1": other + "\n" + one}) == [["w:0", "w:1"]]


def test_programs_without_python_are_compared_by_what_the_kernel_says() -> None:
    places = (("nanosleep", "sleeps"), ("nanosleep", "waits for a disk"), ("pipe_read", "sleeps"))
    stacks = {f"w:{pid}": kernel_stack(pid, *place) for pid, place in enumerate(places)}
    assert groups(stacks) == [["w:2"], ["w:0", "w:1"]]


def test_names_of_tasks_are_written_as_ranges() -> None:
    names = ["chief:0", "worker:0", "worker:1", "worker:2", "worker:4", "eval:7"]
    assert called("job/taskNames.ts", "compactTaskNames", [[names], [[]]]) == [
        "chief:0, worker:0-2, worker:4, eval:7",
        "",
    ]
