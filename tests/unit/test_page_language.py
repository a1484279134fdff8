"""Tests that every text of the page has a Chinese translation with its placeholders, and none is unused."""

from __future__ import annotations

import re
from pathlib import Path

from howdah.api.hints import TEMPLATES
from howdah.api.openapi import openapi
from howdah.locale.catalogue import PAGE, chinese

SOURCES = Path(__file__).parents[2] / "frontend" / "src"
CODE = Path(__file__).parents[2] / "src" / "howdah"
STRING = r'"((?:[^"\\]|\\.)*)"'
# Names that the server gives and the page translates: states.
STATES = {"PENDING", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED", "STOPPED"}
# Names of fields that hold stored sentences; TEXTS: of fields named `text`, only these do.
SENTENCES = {"diagnostics", "exit", "advice", "straggler", "notice", "reason", "reasons", "problems"}
TEXTS = {(record, "text") for record in ("Note", "TimelineMoment", "MarkedFailure", "Flaw")}


def _english() -> set[str]:
    said: set[str] = set()
    for path in SOURCES.rglob("*.ts*"):
        said.update(re.findall(rf"\b(?:t|messageKey)\(\s*{STRING}", path.read_text()))
    return said | STATES | set(TEMPLATES)


def test_every_sentence_has_its_chinese() -> None:
    assert sorted(_english() - set(chinese(PAGE))) == []


def test_no_chinese_is_left_over() -> None:
    assert sorted(set(chinese(PAGE)) - _english()) == []


def test_what_the_server_has_written_down_is_told_in_the_readers_language() -> None:
    """The server renders each field of the format `sentence` (test_answer_language.py); the page shows it as it is."""
    schemas = openapi()["components"]["schemas"]
    named = {
        (record, name): field.get("items", field).get("format")
        for record, schema in schemas.items()
        for name, field in schema.get("properties", {}).items()
        if name in SENTENCES or (record, name) in TEXTS
    }
    assert len(named) > 15
    assert [place for place, kind in named.items() if kind != "sentence"] == []


def test_every_cause_of_lost_work_has_a_word() -> None:
    """Those of `Exit.cause` that the code gives, and those that the history adds."""
    given = {"cancelled", "logs", "master", "other", "port", "released"}
    for path in CODE.rglob("*.py"):
        given.update(re.findall(r"\b(?<!System)Exit\(\s*\"([a-z]+)\"", path.read_text()))
        given.update(re.findall(r"\breplace\([^()]*\bcause=\"([a-z]+)\"", path.read_text()))
    named = re.findall(r"(\w+): messageKey", (SOURCES / "history" / "causeNames.ts").read_text())
    assert given - set(named) == set()
    assert {"exit", "gpu", "memory", "preempted", "stream", "withdrawn"} <= given
