"""Tests what the engine of YARN does at a submission besides submitting, with a ResourceManager that is played."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

import pytest

from howdah.engines.yarn.conf import load
from howdah.engines.yarn.engine import YarnEngine
from howdah.engines.yarn.proto import hadoop_pb2 as pb
from howdah.engines.yarn.rm.application_client_protocol import ResourceManagerClient
from howdah.engines.yarn.upload import JobUploader
from howdah.hadoop.conf import to_xml
from howdah.spec import uris

DAY_S = 86400


class Applications(ResourceManagerClient):
    """Knows the applications of a user, and when each was submitted."""

    submitted: dict[int, float]

    async def reports(
        self,
        types: Iterable[str] = (),
        users: Iterable[str] = (),
        tags: Iterable[str] = (),
        states: Iterable[int] = (),
    ) -> list[pb.ApplicationReport]:
        wanted = set(states)
        return [
            pb.ApplicationReport(state=state, submitted_ms=int(at * 1000))
            for state, at in self.submitted.items()
            if state in wanted
        ]


@pytest.mark.parametrize(("submitted", "oldest"), [({4: 5.0, 5: 4.0, 6: 1.0}, 4.0), ({7: 1.0, 8: 2.0}, float("inf"))])
def test_the_cache_is_cleaned_by_the_oldest_unfinished_application(
    tmp_path: Path, submitted: dict[int, float], oldest: float
) -> None:
    for name, key in (("core-site", "fs.defaultFS"), ("yarn-site", "yarn.resourcemanager.hostname")):
        value = uris.of_local(tmp_path) if key.startswith("fs") else "127.0.0.1"
        (tmp_path / f"{name}.xml").write_bytes(to_xml({key: value}).encode())
    rm = Applications(load(str(tmp_path)))
    rm.submitted = submitted
    asked: list[tuple[float, float]] = []

    class Uploader(JobUploader):
        def clean(self, max_unused_s: float, oldest_job: object) -> None:
            assert callable(oldest_job)
            asked.append((max_unused_s, oldest_job()))

    engine = YarnEngine({"hadoop_conf_dir": str(tmp_path), "cache_days": "2"})
    asyncio.run(engine._clean_cache(rm, Uploader(uris.of_local(tmp_path), str(tmp_path), lambda *_: None)))
    assert asked == [(2 * DAY_S, oldest)]
