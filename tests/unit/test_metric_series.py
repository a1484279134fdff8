"""Tests aggregating resource samples of tasks into buckets, up to the answer that a page gets."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from howdah.api import metric_series as web
from howdah.api.downsample import SampledPoint, downsample
from howdah.errors import InvalidRequest
from howdah.master.server.resource_metrics import MetricsRecorder
from howdah.spec import TaskId, uris
from howdah.spec.codec import encode
from howdah.spec.events import Measured
from howdah.spec.fold import fold
from howdah.spec.gpu import Gpu
from howdah.spec.usage import Usage
from howdah.spec.view import JobView, TaskView

TASKS = [TaskId("worker", 0), TaskId("worker", 1)]
NAMES = [str(task) for task in TASKS]


def kept(directory: Path, **query: str) -> list[dict[str, object]]:
    wish = web.SeriesQuery.from_parameters({"name": "cpu,memory_mib", **query})
    return web.sampled_series(lambda: web.read(uris.of_local(directory)), wish, NAMES)


def test_a_bucket_keeps_least_mean_and_most_of_each_task(tmp_path: Path) -> None:
    series = MetricsRecorder(uris.of_local(tmp_path), TASKS)
    series.begin(1000.0, 1000.0)
    for second, cpu in enumerate((1.0, 2.0, 6.0)):
        series.add_sample(TASKS[0], Usage(cpu=cpu, memory_mib=100), 1001.0 + second)
    series.add_sample(TASKS[1], Usage(cpu=0.5, memory_mib=7), 1012.0)
    series.finish()
    series.journal.close()
    assert kept(tmp_path, name="cpu") == [
        {"task": "worker:0", "name": "cpu", "unit": "cores", "points": [[1000.0, 1.0, 3.0, 6.0]], "steps": []},
        {"task": "worker:1", "name": "cpu", "unit": "cores", "points": [[1010.0, 0.5, 0.5, 0.5]], "steps": []},
    ]
    assert kept(tmp_path, name="memory_mib")[0]["points"] == [[1000, 100, 100, 100]]


def test_the_open_bucket_is_seen_before_it_is_written(tmp_path: Path) -> None:
    series = MetricsRecorder(uris.of_local(tmp_path), TASKS)
    series.begin(0.5, 0.5)
    series.add_sample(TASKS[0], Usage(cpu=1.0), 5.0)
    assert kept(tmp_path) == []
    lines = [line.encode() for line in series.unwritten()]
    found = web.sampled_series(lambda: web.read(uris.of_local(tmp_path)), web.SeriesQuery(("cpu",)), NAMES, lines)
    assert [one["points"] for one in found] == [[[0.5, 1, 1, 1]]]
    series.journal.close()


def test_a_master_that_takes_over_goes_on_with_the_same_buckets_after_a_line_cut_short(tmp_path: Path) -> None:
    first = MetricsRecorder(uris.of_local(tmp_path), TASKS)
    first.begin(100.0, 100.0)
    first.add_sample(TASKS[0], Usage(cpu=1.0), 101.0)
    first.tick(111.0)
    first.journal.close()
    with (tmp_path / web.FILE).open("a") as file:
        file.write('{"t":110,"s":10,"cpu":[1.')
    second = MetricsRecorder(uris.of_local(tmp_path), TASKS)
    second.begin(100.0, 127.0, anew=True)
    second.add_sample(TASKS[1], Usage(cpu=2.0), 128.0)
    second.finish()
    second.journal.close()
    points = {str(one["task"]): one["points"] for one in kept(tmp_path, name="cpu")}
    assert points == {"worker:0": [[100, 1, 1, 1]], "worker:1": [[120, 2, 2, 2]]}


def test_gpus_are_samples_of_their_task_and_idle_ones_show_as_the_least(tmp_path: Path) -> None:
    series = MetricsRecorder(uris.of_local(tmp_path), TASKS)
    series.begin(1.0, 1.0)
    gpus = (Gpu("0", use=1.0, watts=300.0), Gpu("1", use=0.0))
    series.add_sample(TASKS[0], replace(Usage(memory_mib=1.0), gpus=gpus), 2.0)
    line = json.loads(series.open_line())
    series.journal.close()
    assert line["gpu"] == [[0, 0.5, 1], None]
    assert line["gpu_watts"] == [300, None]


def test_buckets_grow_with_the_job_so_that_weeks_stay_small() -> None:
    elapsed, count = 0.0, 0
    while elapsed < 14 * 86400:
        elapsed += web.bucket_length(elapsed, 200)
        count += 1
    assert count < 2600
    assert web.bucket_length(0, 1000) == 50


def test_rubbish_in_the_file_is_passed_over(tmp_path: Path) -> None:
    good = [web.header(0, NAMES), '{"t":10,"s":10,"cpu":[1,[0,1,2]]}\n']
    bad = ["{", "null\n", '{"t":20,"cpu":"x"}\n', '{"tasks":7}\n', '{"t":30,"s":1,"cpu":[[1],3]}\n', "\0\xff\n"]
    (tmp_path / web.FILE).write_text("".join([bad[0] + "\n", *good, *bad[1:], '{"t":40,"s":10,"cpu":[5']))
    points = {str(one["task"]): one["points"] for one in kept(tmp_path, name="cpu")}
    assert points["worker:1"] == [[10, 0, 1, 2], [30, 3, 3, 3]]
    assert web.read(uris.of_local(tmp_path / "no such directory")) is not None
    assert kept(tmp_path / "none") == []


def test_the_bucket_that_a_master_left_open_counts_once_wherever_it_lies() -> None:
    file = [web.header(0, NAMES), '{"t":10,"s":10,"cpu":[1]}', '{"t":10,"s":10,"cpu":[2]}', '{"t":20,"s":10,"cpu":[3]}']
    lines = [line.encode() for line in file]
    found = web.sampled_series(lambda: lines, web.SeriesQuery(("cpu",)), NAMES, [lines[0], b'{"t":20,"s":5,"cpu":[4]}'])
    assert found[0]["points"] == [[10, 2, 2, 2], [20, 4, 4, 4]]


def test_a_file_that_grows_while_it_is_read_twice() -> None:
    reads = [["cpu", 10, 20], ["cpu", 10, 20, 30]]

    def read() -> list[bytes]:
        header, *times = reads.pop(0)
        return [web.header(0, NAMES).encode(), *(f'{{"t":{at},"s":1,"{header}":[{at}]}}'.encode() for at in times)]

    (one,) = web.sampled_series(
        read, web.SeriesQuery(("cpu",)), NAMES, [web.header(0, NAMES).encode(), b'{"t":30,"s":1,"cpu":[7]}']
    )
    assert [row[1] for row in one["points"]] == [10, 20, 7]


def test_weeks_of_many_tasks_are_read_in_little_memory(tmp_path: Path) -> None:
    tasks = [f"worker:{number}" for number in range(10_000)]
    column = json.dumps([[0, 1.25, 2.5]] * len(tasks) * 4)  # as long as many names' columns
    with (tmp_path / web.FILE).open("w") as file:
        file.write(web.header(0, tasks))
        for number in range(100):
            file.write(f'{{"t":{number * 500},"s":500,"cpu":{column}}}\n')
    assert (tmp_path / web.FILE).stat().st_size > 60_000_000
    request = web.SampledSeriesRequest(uris.of_local(tmp_path), "", web.SeriesQuery(("cpu",)), tuple(tasks[:10]))
    script = (
        "import sys; from howdah.api import metric_series; metric_series.main(); "
        "print(open('/proc/self/status').read().partition('VmHWM:')[2].split()[0], file=sys.stderr)"
    )
    asked = json.dumps(encode(request)).encode()
    done = subprocess.run([sys.executable, "-c", script], input=asked, capture_output=True, timeout=120, check=True)
    assert [len(one["points"]) for one in json.loads(done.stdout.partition(b"\n")[2])] == [100] * 10
    assert int(done.stderr) < 75_000  # KiB: the interpreter, a line and what it says


def test_what_is_asked_for_is_bounded() -> None:
    assert web.SeriesQuery.from_parameters({"points": "1000000"}).points == web.MAX_POINTS
    last = web.SeriesQuery.from_parameters({"from": "-300", "to": "-60"}).relative_to(1000.0)
    assert (last.begin, last.end) == (700.0, 940.0)
    assert web.SeriesQuery.from_parameters({"from": "-3000"}).relative_to(1000.0).begin == 0.0
    fixed = web.SeriesQuery.from_parameters({"from": "300"})
    assert fixed.relative_to(1000.0) == fixed
    with pytest.raises(InvalidRequest, match="points is 'many'"):
        web.SeriesQuery.from_parameters({"points": "many"})
    with pytest.raises(InvalidRequest, match="worker:7"):
        web.tasks_of(JobView(tasks={task: TaskView(task) for task in TASKS}), web.SeriesQuery(tasks=("worker:7",)))


def told_series(view: JobView, query: web.SeriesQuery, tasks: list[str]) -> list[dict[str, Any]]:
    return web.program_series(web.program_metrics(view, query, tasks), query)


def test_the_view_goes_on_while_a_series_is_made() -> None:
    view, query = JobView(tasks={task: TaskView(task) for task in TASKS}), web.SeriesQuery(("loss",))
    fold([Measured(1.0, TASKS[0], "loss", 1.0, 1)], view)
    metrics = web.program_metrics(view, query, NAMES)
    fold([Measured(2.0, TASKS[0], "loss", 2.0, 2)], view)
    (one,) = web.program_series(metrics, query)
    assert one["steps"] == [1]


def test_only_a_long_curve_has_points_left_out() -> None:
    view = JobView(tasks={task: TaskView(task) for task in TASKS})
    fold([Measured(float(step), TASKS[0], "loss", 1.0, step) for step in range(50)], view)
    steps = {
        points: told_series(view, web.SeriesQuery(("loss",), points=points), NAMES)[0]["steps"] for points in (50, 25)
    }
    assert steps == {50: [*range(50)], 25: [*range(0, 50, 2)]}


def test_curves_that_programs_tell_come_by_the_same_call() -> None:
    view = JobView(tasks={task: TaskView(task) for task in TASKS})
    fold([Measured(float(step), TASKS[0], "loss", 9.0 - step, step) for step in range(5)], view)
    fold([Measured(5.0, TASKS[0], "loss", None, 5)], view)
    (one,) = told_series(view, web.SeriesQuery(("loss", "cpu")), NAMES)
    assert one["points"][0] == [0, 9, 9, 9]
    assert one["points"][-1] == [5, None, None, None]
    assert one["steps"] == [0, 1, 2, 3, 4, 5]
    assert {"name": "loss", "unit": "", "kind": "told"} in web.available_names(view)


def test_curves_are_told_without_naming_them_whatever_is_in_their_names() -> None:
    view = JobView(tasks={task: TaskView(task) for task in TASKS})
    names = ["loss, smoothed", "a,b", "cpu", *(f"expert/{number}" for number in range(400))]
    fold([Measured(1.0, task, name, 2.0, 1) for task in TASKS for name in names], view)
    told = told_series(view, web.SeriesQuery.from_parameters({"kind": "told", "task": NAMES[1]}), NAMES[1:])
    assert {one["name"] for one in told} == set(names) - {"cpu"}  # that one is sampled
    assert {one["task"] for one in told} == {NAMES[1]}
    assert told_series(view, web.SeriesQuery.from_parameters({"kind": "all"}), NAMES[1:]) == told
    assert told_series(view, web.SeriesQuery.from_parameters({"kind": "sampled"}), NAMES) == []
    assert web.SeriesQuery.from_parameters({"kind": "all", "name": "cpu,loss"}).names == (*web.UNITS, "loss")
    with pytest.raises(InvalidRequest, match="kind is 'other'"):
        web.SeriesQuery.from_parameters({"kind": "other"})


values = st.floats(allow_nan=False, allow_infinity=False, width=32)


@given(st.lists(values, min_size=1, max_size=300), st.integers(1, 50))
def test_fewer_points_keep_the_extremes_and_the_mean(heights: list[float], max_points: int) -> None:
    points = [SampledPoint(float(x), y, y, y) for x, y in enumerate(heights)]
    fewer = downsample(points, max_points)
    assert len(fewer) <= max(max_points, 1)
    assert min(p.minimum for p in fewer if p.minimum is not None) == min(heights)
    assert max(p.maximum for p in fewer if p.maximum is not None) == max(heights)
    assert sum(p.weight for p in fewer) == len(heights)
    mean = sum((p.mean or 0) * p.weight for p in fewer) / len(heights)
    assert mean == pytest.approx(sum(heights) / len(heights), rel=1e-6, abs=1e-3)
    assert fewer == downsample(points, max_points)


def test_not_finite_values_are_gaps() -> None:
    nan = float("nan")
    assert downsample([SampledPoint(0, nan, nan, nan), SampledPoint(1, 1, 1, 1)], 5)[0].mean is None
    assert downsample([SampledPoint(x, nan, nan, nan) for x in range(9)], 3) == [
        SampledPoint(x, None, None, None, 0) for x in (0, 3, 6)
    ]
