"""Tests which mistakes in streams are found before any file is looked at."""

from __future__ import annotations

import pytest

from howdah.spec import Input, JobSpec, Output, Role, Save
from howdah.spec.validation import find_mistakes


def job(*data: Input | Output) -> JobSpec:
    return JobSpec(
        roles={"worker": Role("true", replicas=2), "reader": Role("true")},
        inputs=tuple(one for one in data if isinstance(one, Input)),
        outputs=tuple(one for one in data if isinstance(one, Output)),
    )


def stream(path: str = "o", **fields: object) -> Output:
    return Output(path, strategy="stream", **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (job(Input("d", strategy="stream", to="data")), "inputs.0.to: is 'data', which has no effect on a stream"),
        (job(Input("d", strategy="stream", cache=True)), "inputs.0.cache: is True, which has no effect on a stream"),
        (job(Input("d", epochs=2)), "inputs.0.epochs: is 2, which has an effect with `strategy: stream` only"),
        (job(Input("d", format="csv")), "inputs.0.format: is 'csv', which has an effect with"),
        (job(stream(source="model")), "outputs.0.from: is 'model', which has no effect on a stream: leave it out"),
        (job(stream(save=Save(every_s=60))), "outputs.0.save: is for files"),
        (job(Output("o", format="gzip")), "outputs.0.format: is 'gzip', which has an effect with"),
        (job(stream(), stream("p")), "outputs.1.strategy: is 'stream', as outputs.0.strategy is"),
        (job(stream(tasks="worker"), stream("p", tasks="worker:1")), "what a task prints goes to one output"),
        (job(stream(tasks="chief"), stream("p", tasks="worker:0")), "Divide them by `tasks`"),
    ],
)
def test_what_is_wrong_with_a_stream(spec: JobSpec, message: str) -> None:
    (mistake,) = find_mistakes(spec)
    assert message in str(mistake)


def test_tasks_that_differ_may_each_have_a_stream() -> None:
    assert not find_mistakes(job(stream(tasks="worker"), stream("p", tasks="reader"), Output("q", source="model")))
    assert not find_mistakes(job(stream(tasks="worker:0"), stream("p", tasks="worker:1")))
    assert not find_mistakes(
        job(Input("d", strategy="stream", format="csv", epochs=0, shuffle=True, window=9, share="all"))
    )
