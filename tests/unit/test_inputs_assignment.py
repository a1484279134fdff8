"""Tests that each file of a split input goes to exactly one task, and that tasks differ by one file at most."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from howdah.inputs.assignment import (
    assign_files,
    deduplicate_names,
    placeholder_uris,
    plan_fetches,
    tasks_without_files,
)
from howdah.spec import DataFile, Input, JobSpec, Role, StagedInput, StagedJob, TaskId
from howdah.wire.messages import Fetch

PATHS = st.lists(
    st.lists(st.sampled_from(["a", "b", "a-2", "b.csv", "a.tar.gz", "c", ".x"]), min_size=1, max_size=3).map("/".join),
    max_size=30,
    unique=True,
)


def job(*inputs: StagedInput, strategy: str = "download", cache: bool = False, **replicas: int) -> StagedJob:
    roles = {name: Role("true", count) for name, count in replicas.items()}
    asked = (Input("x", one.to, one.roles, one.share, strategy, cache=cache) for one in inputs)
    return StagedJob(JobSpec(roles, inputs=tuple(asked)), "file:///home", (), inputs)


def files(*names: str) -> tuple[DataFile, ...]:
    return tuple(DataFile(f"hdfs://n/{name}", name, 1) for name in names)


def names(found: tuple[Fetch, ...]) -> list[str]:
    return [f"{fetch.to}/{file.name}" for fetch in found for file in fetch.files]


@settings(deadline=None)  # this machine may be busy
@given(st.integers(0, 50), st.integers(1, 12), st.integers(0, 1))
def test_every_file_once_and_evenly(count: int, workers: int, chiefs: int) -> None:
    roles = {"worker": workers, "ps": 2, **({"chief": 1} if chiefs else {})}
    staged = job(StagedInput("input", files(*map(str, range(count)))), **roles)
    row = [TaskId(role, n) for role in ("chief", "worker") if role in roles for n in range(roles[role])]
    dealt = [names(plan_fetches(staged, task)) for task in row]
    assert sorted(name for share in dealt for name in share) == sorted(f"input/{number}" for number in range(count))
    assert max(map(len, dealt)) - min(map(len, dealt)) <= 1
    assert dealt[0] == [f"input/{number}" for number in range(0, count, len(row))]


@settings(deadline=None)  # this machine may be busy
@given(st.lists(PATHS, max_size=4))
def test_names_never_clash(inputs: list[list[str]]) -> None:
    settled = deduplicate_names(tuple(StagedInput("input", files(*paths)) for paths in inputs))
    taken = [file.name for entry in settled for file in entry.files]
    directories = {name.rsplit("/", depth)[0] for name in taken for depth in range(1, name.count("/") + 1)}
    assert len(set(taken)) == len(taken) == sum(map(len, inputs))
    assert directories.isdisjoint(taken)
    assert [file.uri for entry in settled for file in entry.files] == [
        f"hdfs://n/{p}" for paths in inputs for p in paths
    ]


def test_the_second_of_a_name_gets_a_number_before_its_endings() -> None:
    one, two, three = (StagedInput("input", files("d/a.tar.gz", "plain")) for _ in range(3))
    other = StagedInput("other", files("plain"))
    assert [[file.name for file in entry.files] for entry in deduplicate_names((one, two, other, three))] == [
        ["d/a.tar.gz", "plain"],
        ["d/a-2.tar.gz", "plain-2"],
        ["plain"],
        ["d/a-3.tar.gz", "plain-3"],
    ]


def test_two_ways_to_write_one_directory_are_one() -> None:
    staged = job(StagedInput("./in/", files("a")), StagedInput("in", files("a")), worker=1)
    assert plan_fetches(staged, TaskId("worker", 0)) == (
        Fetch("in", (files("a")[0], replace(files("a")[0], name="a-2"))),
    )


def test_all_gives_everyone_everything() -> None:
    staged = job(StagedInput("input", files("a", "b"), share="all"), worker=2)
    assert [names(plan_fetches(staged, TaskId("worker", n))) for n in (0, 1)] == [["input/a", "input/b"]] * 2


def test_ps_and_evaluator_get_data_only_when_they_ask() -> None:
    entry = StagedInput("input", files("a", "b"))
    staged = job(entry, worker=2, ps=1, evaluator=1)
    assert plan_fetches(staged, TaskId("ps", 0)) == plan_fetches(staged, TaskId("evaluator", 0)) == ()
    asked = job(replace(entry, roles=("ps",)), worker=2, ps=1)
    assert names(plan_fetches(asked, TaskId("ps", 0))) == ["input/a", "input/b"]
    assert plan_fetches(asked, TaskId("worker", 0)) == ()


def test_roles_of_their_own_are_rows_of_their_own() -> None:
    staged = job(StagedInput("input", files("a", "b")), reader=2, worker=1)
    assert names(plan_fetches(staged, TaskId("worker", 0))) == ["input/a", "input/b"]
    assert names(plan_fetches(staged, TaskId("reader", 1))) == ["input/b"]


def test_a_task_without_files_still_gets_the_directory() -> None:
    staged = job(StagedInput("input", files("a")), worker=2)
    assert plan_fetches(staged, TaskId("worker", 1)) == (Fetch("input", ()),)


@settings(deadline=None)
@given(st.lists(st.integers(0, 1000), max_size=60), st.integers(1, 9))
def test_by_bytes_every_file_is_assigned_once_and_no_task_has_more_than_the_mean_and_a_file(
    sizes: list[int], tasks: int
) -> None:
    given_files = tuple(DataFile(f"hdfs://n/{n}", str(n), size) for n, size in enumerate(sizes))
    dealt = assign_files(Input("x", share="bytes"), given_files, tasks)
    assert sorted((file for part in dealt for file in part), key=lambda file: int(file.name)) == list(given_files)
    loads = [sum(file.size for file in part) for part in dealt]
    assert max(loads) <= sum(sizes) / tasks + max(sizes, default=0)
    assert dealt == assign_files(Input("x", share="bytes"), given_files, tasks)
    assert all(dealt) or len(sizes) < tasks


def test_empty_files_are_spread_too() -> None:
    empty = tuple(DataFile(f"hdfs://n/{n}", str(n), 0) for n in range(6))
    assert [len(part) for part in assign_files(Input("x", share="bytes"), empty, 3)] == [2, 2, 2]


def test_the_chief_gets_the_number_that_was_said_and_the_others_the_rest() -> None:
    five = files("a", "b", "c", "d", "e")
    for share in ("split", "bytes"):
        parts = [[file.name for file in part] for part in assign_files(Input("x", share=share, chief=1), five, 3)]
        assert parts == [["a"], ["b", "d"], ["c", "e"]]
    assert [len(part) for part in assign_files(Input("x", chief=0), five, 3)] == [0, 3, 2]
    assert assign_files(Input("x", chief=2), five, 1) == [five]


def test_a_job_with_more_tasks_than_files_is_told_whom_they_do_not_reach() -> None:
    two = files("a", "b")
    spec = JobSpec({"ps": Role("true", 4), "worker": Role("true", 4), "chief": Role("true")})
    assert tasks_without_files(spec, Input("x"), two) == [TaskId("worker", n) for n in (1, 2, 3)]
    assert tasks_without_files(spec, Input("x", chief=0), two) == [TaskId("worker", n) for n in (2, 3)]
    assert tasks_without_files(spec, Input("x", share="all"), two) == []
    assert tasks_without_files(spec, Input("x", roles=("chief",)), two) == []
    unwatched = replace(spec, roles={name: replace(role, tracked=name == "chief") for name, role in spec.roles.items()})
    assert tasks_without_files(unwatched, Input("x"), two) == []


def test_placeholders_are_dealt_like_downloads_and_not_downloaded() -> None:
    staged = job(
        StagedInput("./train", files("a", "b", "c")),
        StagedInput("train", files("d")),
        strategy="placeholder",
        worker=2,
        ps=1,
    )
    assert placeholder_uris(staged, TaskId("worker", 0)) == {"train": ("hdfs://n/a", "hdfs://n/c", "hdfs://n/d")}
    assert placeholder_uris(staged, TaskId("worker", 1)) == {"train": ("hdfs://n/b",)}
    assert placeholder_uris(staged, TaskId("ps", 0)) == {}
    assert plan_fetches(staged, TaskId("worker", 0)) == ()


def test_what_the_node_keeps_is_a_fetch_of_its_own() -> None:
    kept, plain = Input("x", "in", cache=True), Input("y", "in")
    staged = replace(job(worker=1), inputs=(StagedInput("in", files("a")), StagedInput("in", files("b"))))
    staged = replace(staged, job=replace(staged.job, inputs=(kept, plain)))
    assert plan_fetches(staged, TaskId("worker", 0)) == (Fetch("in", files("a"), cache=True), Fetch("in", files("b")))
