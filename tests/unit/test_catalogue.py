"""Tests that the catalogue of translations has each text's Chinese once, with the same placeholders."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog, Message
from babel.messages.pofile import read_po

from howdah.cli.i18n import _, choose
from howdah.eventfiles.svg import WORDS
from howdah.locale import catalogue
from howdah.locale.stored_sentences import _templates, in_chinese

CONTEXTS = {None, catalogue.MISTAKE, catalogue.STORED, catalogue.CHART, catalogue.PAGE}
SOURCE = catalogue.FILE.with_suffix(".po")


def source() -> Catalog:
    with SOURCE.open("rb") as file:
        return read_po(file, locale="zh", abort_invalid=True)


def entries() -> list[Message]:
    return [entry for entry in source() if entry.id]


def test_what_is_compiled_is_the_source() -> None:
    every = {(entry.context or "", entry.id): entry.string for entry in entries()}
    compiled = {
        (context or "", english): translated
        for context in CONTEXTS
        for english, translated in catalogue.chinese(context or "").items()
    }
    assert compiled == every


def test_each_text_stands_once_and_is_translated() -> None:
    assert len(re.findall("^msgid ", SOURCE.read_text(encoding="utf-8"), re.MULTILINE)) == len(entries()) + 1
    assert [entry.id for entry in entries() if not entry.string or entry.fuzzy] == []
    assert {entry.context for entry in entries()} == CONTEXTS
    assert source().obsolete == {}


def test_both_languages_have_the_same_placeholders() -> None:
    assert [entry.id for entry in entries() if _placeholders(entry.id) != _placeholders(entry.string)] == []


def _placeholders(text: object) -> set[str]:
    return set(re.findall(r"\{\w*\}", str(text)))


def test_charts_have_their_chinese() -> None:
    assert set(catalogue.chinese(catalogue.CHART)) == set(WORDS.values())


def test_without_a_compiled_catalogue_all_is_english(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "FILE", tmp_path / "howdah.mo")
    caches = (catalogue.chinese, catalogue._catalogue, _templates)
    for cache in caches:
        cache.cache_clear()
    try:
        choose("zh")
        assert _("Commands") == "Commands"
        assert in_chinese("exit code 3") == "exit code 3"
    finally:
        choose("en")
        for cache in caches:
            cache.cache_clear()


def test_an_english_reader_does_not_load_the_catalogue() -> None:
    program = (
        "import sys; from howdah.cli.i18n import _, choose; choose('en'); _('Commands');"
        "sys.exit('howdah.locale.catalogue' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], timeout=60, check=True)
