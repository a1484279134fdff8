"""Tests values that programs announce, and scripts that are placed in the working directory."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from howdah.executor.process.announced_values import MAX_LINE, AnnouncedValues
from howdah.frameworks import find
from howdah.master.decisions.executor_orders import OrderBuilder
from howdah.spec import JobSpec, Role, StagedFile, StagedJob, TaskId
from howdah.spec.events import Yielded
from howdah.spec.validation import find_mistakes
from howdah.testing import OK, Gang
from howdah.wire.messages import Phase

WANTED = {"MODEL_PARAMS": "Model parameters: ", "PATH_OUT": "saved to "}


def fed(*pieces: bytes) -> dict[str, str]:
    yields = AnnouncedValues(WANTED)
    for piece in pieces:
        yields.feed(piece)
    yields.end()
    return yields.found


class TestYields:
    def test_what_follows_the_words_on_their_line(self) -> None:
        assert fed(b"INFO Model parameters: --lr 0.1 --n 3\r\nmore\n") == {"MODEL_PARAMS": "--lr 0.1 --n 3"}

    def test_the_first_line_counts(self) -> None:
        assert fed(b"saved to a\n", b"saved to b\n")["PATH_OUT"] == "a"

    def test_a_last_line_needs_no_end(self) -> None:
        assert fed(b"saved ", b"to x") == {"PATH_OUT": "x"}

    def test_a_line_too_long_is_passed_over(self) -> None:
        assert fed(b"saved to " + b"x" * MAX_LINE, b"yz\nsaved to short\n") == {"PATH_OUT": "short"}

    def test_not_unicode_and_nul(self) -> None:
        assert fed(b"saved to \xff\0y\n") == {"PATH_OUT": "\ufffdy"}

    @given(st.lists(st.integers(1, 40)))
    def test_however_it_is_cut(self, cuts: list[int]) -> None:
        data = b"a\nx saved to there\nModel parameters: p=1 q\nb\n" * 2
        pieces, rest = [], data
        for cut in cuts:
            pieces.append(rest[:cut])
            rest = rest[cut:]
        assert fed(*pieces, rest) == {"MODEL_PARAMS": "p=1 q", "PATH_OUT": "there"}


@pytest.mark.parametrize(
    ("yields", "problem"),
    [({"1X": "a "}, "not a variable name"), ({"X": " "}, "words before the value"), ({"X": "a\nb"}, "same line")],
)
def test_wrong_yields_are_refused(yields: dict[str, str], problem: str) -> None:
    job = JobSpec(roles={"worker": Role(command="true", yields=yields)})
    (mistake,) = find_mistakes(job)
    assert problem in str(mistake)


class TestGiven:
    """What a role announces is told to those that come after it."""

    prepare = Role("p", replicas=2, yields={"PARAMS": "params: "})
    job = JobSpec(roles={"prepare": prepare, "train": Role("t", after=("prepare",))})

    def told(self, gang: Gang, task: str) -> Mapping[str, str]:
        director = OrderBuilder("job-1", StagedJob(gang.state.job, "file:///x"), find("generic"))
        return director.world_environment(gang.state, gang.state.tasks[TaskId.parse(task)])

    def test_of_several_the_first_is_believed(self) -> None:
        gang = Gang(self.job)
        for _ in range(2):
            gang.grant("prepare")
        for index in (0, 1):
            gang.join(f"prepare:{index}")
        for index in (1, 0):
            gang.say(f"prepare:{index}", Phase.ENDED, ports={"main": 4000}, exit=OK, yields={"PARAMS": f"from {index}"})
        gang.grant("train")
        gang.join("train:0")
        assert self.told(gang, "train:0")["PARAMS"] == "from 0"
        assert [event.values for event in gang.recorded(Yielded)] == [{"PARAMS": "from 1"}, {"PARAMS": "from 0"}]

    def test_executors_are_told_what_to_look_for(self) -> None:
        gang = Gang(self.job)
        staged = StagedJob(self.job, "file:///x", files=(StagedFile("howdah-files-0", "file:///a.zip", "spread"),))
        prepare = gang.state.tasks[TaskId("prepare", 0)]
        assignment = OrderBuilder("job-1", staged, find("generic")).assignment(gang.state, prepare)
        assert (assignment.yields, assignment.unpack_into_workdir) == ({"PARAMS": "params: "}, {"howdah-files-0": ""})
