"""Invented answers about the curves of a job's programs."""

from __future__ import annotations

import math
import random
from functools import cache
from itertools import pairwise
from typing import Any

from fake_runs import HTML_ATTACK, STARTED

# ruff: noqa: ARG001 - some answers are the same for all parameters


@cache
def many_points(count: int) -> dict[str, Any]:
    return {"version": 1, "complete": True, "series": [_line("train", "loss", random_walk(count))]}


def _line(run: str, tag: str, points: list[Any], odd: list[Any] | None = None) -> dict[str, Any]:
    last = [*points[-1][:2], points[-1][3]]
    odd = odd or []
    counts = {"nan": sum(name == "NaN" for _, _, name in odd), "infinite": sum(name != "NaN" for _, _, name in odd)}
    return {
        "run": run,
        "tag": tag,
        "points": points,
        "last": last,
        "count": len(points),
        "started": STARTED,
        **counts,
        "odd": odd,
    }


def curves_runs(params: dict[str, str]) -> dict[str, Any]:
    tags = {
        "scalar": ["loss", "accuracy", f"eval/{HTML_ATTACK}", "train/loss", "train/rate"],
        "histogram": ["dense/kernel"],
        "image": ["input"],
        "audio": ["speech"],
        "pr_curve": ["classes"],
        "text": ["note"],
        "hparams": True,
    }
    runs = [
        {"run": run, "tags": tags, "from": STARTED, "to": STARTED + 600, "steps": 1000} for run in ("train", "eval")
    ]
    errors = [{"file": "events.out.1", "text": "cut short at byte 812", "memory": False}]
    return {"version": 1, "runs": runs, "complete": True, "errors": errors}


def random_walk(count: int) -> list[list[float]]:
    noise, value, found = random.Random(1), 3.0, []  # noqa: S311
    for step in range(count):
        value = 0.999 * value + noise.gauss(0, 0.02)
        found.append([step, STARTED + step * 0.6, value, value, value])
    return found


def curves_scalars(params: dict[str, str]) -> dict[str, Any]:
    points = [[step, when, value - 0.1, value, value + 0.1] for step, when, _, value, _ in random_walk(1000)]
    points[500][2:] = [None, None, None]  # type: ignore[list-item]
    odd = [[500, STARTED + 300, "NaN"], [700, STARTED + 420, "Infinity"], [710, STARTED + 426, "-Infinity"]]
    series = [_line(run, tag, points, odd) for run in params["run"].split(",") for tag in params["tag"].split(",")]
    return {"version": 1, "complete": True, "series": series}


def curves_histograms(params: dict[str, str]) -> dict[str, Any]:
    steps = []
    for step in range(0, 1000, 20):
        width = 0.2 + step / 1500
        edges = [-2 + 4 * n / 30 for n in range(31)]
        buckets = [[left, right, 1000 * math.exp(-((left / width) ** 2))] for left, right in pairwise(edges)]
        steps.append({"step": step, "time": STARTED + step, "buckets": buckets})
    return _tag_answer(params, "steps", steps)


def _tag_answer(params: dict[str, str], name: str, found: list[Any]) -> dict[str, Any]:
    """Return an answer about one tag of one run."""
    return {"version": 1, "run": params["run"], "tag": params["tag"], name: found}


def curves_distributions(params: dict[str, str]) -> dict[str, Any]:
    shares = [0, 7, 16, 31, 50, 69, 84, 93, 100]
    steps = [
        {"step": step, "time": STARTED, "percentiles": [[share, (share - 50) * (1 + step / 500)] for share in shares]}
        for step in range(0, 1000, 20)
    ]
    return _tag_answer(params, "steps", steps)


def curves_images(params: dict[str, str]) -> dict[str, Any]:
    size = {"width": 28, "height": 28, "count": 3}
    return _tag_answer(params, "images", [{"step": step, "time": STARTED + step, **size} for step in range(0, 100, 10)])


def curves_audio(params: dict[str, str]) -> dict[str, Any]:
    clips = [{"step": step, "time": STARTED + step, "count": 2} for step in range(0, 100, 10)]
    return _tag_answer(params, "steps", clips)


def curves_pr_curves(params: dict[str, str]) -> dict[str, Any]:
    shares = [number / 50 for number in range(51)]
    steps = [
        {"step": step, "time": STARTED + step, "points": [[1 - x, 1 - (1 - x) ** (1 + step / 20), x] for x in shares]}
        for step in range(0, 100, 10)
    ]
    return _tag_answer(params, "steps", steps)


def curves_text(params: dict[str, str]) -> dict[str, Any]:
    return _tag_answer(params, "texts", [{"step": 0, "time": STARTED, "text": f"# a note\n{HTML_ATTACK}"}])


def curves_hparams(params: dict[str, str]) -> dict[str, Any]:
    rest = {"group": "", "started": STARTED, "ended": 0.0, "status": ""}
    values = [{"rate": 0.1 / n, "opt": HTML_ATTACK} for n in (1, 2, 3)]
    runs = [{"run": f"run-{n}", "values": each, "metrics": {"loss": n}, **rest} for n, each in enumerate(values, 1)]
    return {"version": 1, "runs": runs}
