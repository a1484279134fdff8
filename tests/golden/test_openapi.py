"""Tests that docs/api.md's tables, openapi.json and job.schema.json match the code; HOWDAH_GOLDEN=write writes them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from howdah.api.routes import ACTIONS, ROUTES, Parameter, Route, handler, match
from howdah.master.server.user_actions import USER_ACTIONS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "api.md"
GENERATE = [sys.executable, str(ROOT / "tools" / "generate.py")]


def calls() -> Iterator[str]:
    yield "| call | | query |\n|---|---|---|\n"
    meanings: dict[str, dict[str, list[str]]] = {}
    for call in ROUTES:
        path = re.sub(r"\{(\w+)\}", lambda found: {"job": "ID", "task": "TASK"}.get(found[1], "…"), call.path)
        yield f"| `{path}` | {call.summary} | {', '.join(f'`{each.name}`' for each in call.parameters)} |\n"
        for each in call.parameters:
            meanings.setdefault(each.name, {}).setdefault(each.summary.rstrip("."), []).append(f"`{path}`")
    yield "\nThe parameters of the queries:\n\n"
    for name, by_text in meanings.items():
        for text, paths in by_text.items():
            where = f" (of {', '.join(paths)})" if len(by_text) > 1 else ""
            yield f"- `{name}`{where}: {text}.\n"


def actions() -> Iterator[str]:
    yield "| action | | body, beside `token` |\n|---|---|---|\n"
    for action in ACTIONS:
        yield f"| `{action.name}` | {action.summary} | {words(action.words)} |\n"


def words(parameters: tuple[Parameter, ...]) -> str:
    shown = (f"`{each.name}`: {each.summary}".rstrip(".").replace("|", "\\|") for each in parameters)
    return "; ".join(shown)


def with_tables(page: str) -> str:
    for name, table in (("calls", calls()), ("actions", actions())):
        pattern = rf"(?s)(<!-- {name}: [^>]*-->\n).*(<!-- end of {name} -->)"
        rows = "".join(table)
        page = re.sub(pattern, lambda found: found[1] + rows + found[2], page)  # noqa: B023 - used at once
    return page


def test_the_tables_are_those_of_the_code() -> None:
    page = with_tables(PAGE.read_text())
    if os.environ.get("HOWDAH_GOLDEN") == "write":
        PAGE.write_text(page)
    assert PAGE.read_text() == page


def test_the_documents_are_those_of_the_code() -> None:
    if os.environ.get("HOWDAH_GOLDEN") == "write":
        subprocess.run([*GENERATE, "documents", str(ROOT / "docs")], timeout=60, check=True)
    done = subprocess.run([*GENERATE, "check"], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("call", ROUTES, ids=lambda call: call.path)
def test_each_call_is_found_by_its_path_and_has_a_handler(call: Route) -> None:
    found = match(call.path.replace("{job}", "j").replace("{task}", "worker:0").replace("{rest}", "a/b"))
    assert found is not None
    assert found[0] is call
    assert callable(handler(call))


def test_every_action_of_the_master_is_told_of() -> None:
    assert set(USER_ACTIONS) == {action.name for action in ACTIONS if not action.of_history}
