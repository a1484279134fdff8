"""Tests that sentences which earlier versions recorded are shown in Chinese, too."""

from __future__ import annotations

import pytest
from sentences_said import said

from howdah.cli.i18n import choose
from howdah.cli.progress_lines import event_line
from howdah.engines.yarn.exit_codes import REFUSED, STATUSES
from howdah.engines.yarn.images import NOT_USED, UNKNOWN
from howdah.engines.yarn.placement_constraints import _NOT_SAID
from howdah.executor.gpu.monitor import find_hardware_fault
from howdah.executor.process.default_python import explanation
from howdah.executor.process.exit_explanation import explain, why_not_started
from howdah.locale.catalogue import chinese as translations
from howdah.locale.stored_sentences import PLACE, PLACEHOLDERS, in_chinese
from howdah.master.health.stragglers import _FLOORS, PROGRESS, STEPS
from howdah.spec import Exit, TaskId
from howdah.spec.events import Ended, Noted
from howdah.spec.gpu import HARDWARE, Gpu

MISSING = (
    (127, "bash: python: command not found"),
    (127, "bash: ./x: No such file or directory"),
    (127, "bash: /x: No such file or directory"),
    (126, "bash: ./x: Permission denied"),
    (126, "bash: ./x: cannot execute binary file: Exec format error"),
    (127, "bash: ./x: cannot execute: required file not found"),
    (1, "ModuleNotFoundError: No module named 'torch'"),
)
NOT_STARTED = (("x", FileNotFoundError(2, "")), ("./x", FileNotFoundError(2, "")), ("x", OSError(7, "too long")))
# Said from tables, or in parts.
OTHERS = (
    "exit code 3",
    "killed by SIGKILL (9)",
    "killed by signal 70",
    "killed by the kernel: used 7 MiB of 8 MiB",
    "exit code 1: a port it wanted to listen on was taken meanwhile",
    "waiting for the master's container in queue a: b",
    *(sentence for _, sentence in STATUSES.values()),
    *HARDWARE.values(),
    *(find_hardware_fault([Gpu("3", ecc=2, fault=xid)], {"3": 0}) + "; exit code 1" for xid in (0, 79, 999)),
    "worker:1 attempt 2 stderr: http://n1:8042/ws/v1/node/containerlogs/c1/stderr: 70 bytes are missing",
    "worker:1 is being searched 4 times already: try again later",
    "there is no memory for all of it: of each tag about one step in 8 is kept, and no further tags",
    "an open event file is shown when it is closed: google-crc32c, or libcrc32c, is not installed here",
    "70 values of more tags than can be kept are left out",
    "2 GPUs are asked for, 1 of this node's 4 are free",
    "2 GPUs are asked for, 1 of this node's 4 are free; user 1005 (pid 77) holds 0; user 1005 (pid 77) holds 1",
    "waiting for 4 GiB: 3 GiB of 6 GiB are used by local-20261121-125632-2f95",
    "waiting for 2 vcores: 3 of 4 are used by local-20261121-125632-2f95, local-20261121-125633-2f96",
    "waiting behind local-20261121-125632-2f95, which came first",
    "number 3 in this machine's queue, in which local-20261121-125632-2f95 is the first",
    "number 3 in this machine's queue, behind local-20261121-125632-2f95, local-20261121-125633-2f96",
    "the event log is damaged, lines that were skipped: 3",
    "its event log is damaged: nothing in it can be read",
    "its event log is damaged: its beginning cannot be read",
    "its event log does not say how it ended: the log is damaged, or all of the job was killed",
    "it has no event log",
    "its directory cannot be read: Permission denied",
    "/home/queue/000000000001-local is damaged: Expecting value",
    "more than 100 curves at once: name fewer by run= and tag=",
    explanation(),
    *(str(explain(Exit("exit", code, lines=(line,)), "/work")) for code, line in MISSING),
    *(why_not_started([name], {}, "/work", error) for name, error in NOT_STARTED),
    NOT_USED.format(image="'a'", node="n1", runtime="docker"),
    UNKNOWN.format(image="'a'"),
    REFUSED.format(image="'a'", node="n1", runtime="docker"),
    "/data has 2 files: worker starts 2 of 4 tasks",
    "/data has 2 files: 3 tasks get none, the first is worker:1",
    *_FLOORS,
    _NOT_SAID,
    PROGRESS,
    STEPS,
)


def chinese(text: str) -> bool:
    return any("\u4e00" <= letter <= "\u9fff" for letter in text)


def test_everything_that_is_said_has_its_chinese() -> None:
    found = list(said())
    assert len(found) > 20
    assert [(where, text) for where, text in found if not chinese(in_chinese(text))] == []
    assert [text for text in OTHERS if not chinese(in_chinese(text))] == []


def test_each_placeholder_is_of_some_sentence() -> None:
    for context, placeholders in PLACEHOLDERS.items():
        assert set(placeholders) <= {name for english in translations(context) for name in PLACE.findall(english)}


@pytest.mark.parametrize(
    ("english", "expected"),
    [
        (
            "worker:1 on node7: killed by SIGKILL (9) (retry 1 of 3)",
            "worker:1（node7）：被信号 SIGKILL (9) 终止（第 1 次重试，最多 3 次）",
        ),
        ("ps:0 restarted: ps:0: exit code 1", "ps:0 重新启动：ps:0：退出码 1"),
        (
            "worker:2 is out of line: CPU (cores) 0.1, its role's median 3",
            "worker:2 偏离同角色任务：CPU（核） 0.1，同角色中位数 3",
        ),
        ("what the program itself has said", "what the program itself has said"),
        ("snapshot 3 is at hdfs://n/s", "快照 3 位于 hdfs://n/s"),
        ("copy 3 is at hdfs://n/s", "快照 3 位于 hdfs://n/s"),
        ("an unfinished snapshot at hdfs://n/s can't be removed: x", "无法删除 hdfs://n/s 中未完成的快照：x"),
        ("an unfinished copy at hdfs://n/s can't be removed: x", "无法删除 hdfs://n/s 中未完成的快照：x"),
        ("", ""),
        (
            "worker:0 on n1: exit code 127: 'nosuch' is not found on PATH: name an environment that has it "
            "(environment), or write its path",
            "worker:0（n1）：退出码 127：在 PATH 中找不到 'nosuch'：请指定包含它的环境（environment），或写出其路径",
        ),
    ],
)
def test_sentences_within_sentences(english: str, expected: str) -> None:
    assert in_chinese(english) == expected


def test_the_command_line_tells_them() -> None:
    ended = Ended(1.0, TaskId("worker", 1), 1, 1, Exit("exit", 3), "node7")
    try:
        choose("zh")
        assert event_line(ended) == "worker:1（node7）：退出码 3"
        assert event_line(Noted(1.0, "memory limits are not enforced: no cgroup")) == "内存限制无效：no cgroup"
    finally:
        choose("en")
    assert event_line(ended) == "worker:1 on node7: exit code 3"
