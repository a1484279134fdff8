"""Tests that what starts a job on YARN does not import what it does not need until then."""

from __future__ import annotations

import subprocess
import sys

import pytest

CLIENT = "howdah.cli.run, howdah.engines.yarn.engine, howdah.staging.runtime_archive, howdah.storage.hdfs.client"
MASTER = "howdah.master.__main__, howdah.engines.yarn.allocator"
NO_CLIENT_OF_HTTP = {"urllib.request", "xml.sax.saxutils"}
AFTER_THE_SUBMISSION = {
    "howdah.cli.follow",
    "howdah.client.program_files",
    "howdah.engines.cleanup",
    "howdah.engines.yarn.allocator",
    "howdah.engines.yarn.logs.aggregated",
    "howdah.engines.yarn.pending_reasons",
    "howdah.outputs.commit",
    "howdah.spec.events",
    "howdah.wire.messages",
}


@pytest.mark.parametrize(
    ("started", "unwanted"),
    [(CLIENT, {"ctypes", *NO_CLIENT_OF_HTTP, *AFTER_THE_SUBMISSION}), (MASTER, {"ctypes", *NO_CLIENT_OF_HTTP})],
)
def test_nothing_unneeded_is_imported(started: str, unwanted: set[str]) -> None:
    program = f"import sys; import {started}; print(*sorted({unwanted!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], timeout=60, check=True, capture_output=True, text=True)
    assert done.stdout.split() == []


def test_a_reader_of_a_job_does_not_import_the_schemas_of_its_page() -> None:
    program = "import sys; import howdah.cli.follow; sys.exit(bool({'howdah.api.schemas'} & set(sys.modules)))"
    subprocess.run([sys.executable, "-c", program], timeout=60, check=True)
