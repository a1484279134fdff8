"""Tests that messages keep template and values in logs and on the wire, and are rendered in the reader's language."""

from __future__ import annotations

import ast
import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import source

from howdah.engines.pending_reasons import REASONS
from howdah.locale.catalogue import STORED, chinese
from howdah.locale.messages import render
from howdah.spec import Exit, Outcome, State, TaskId
from howdah.spec.advice import ADVICE
from howdah.spec.codec import decode, encode
from howdah.spec.event_lines import read_log, to_line
from howdah.spec.events import Ended, GangRestarted, JobFinished, Noted, SaveDone
from howdah.spec.fold import fold
from howdah.spec.message import MAX_LETTERS, PLACEHOLDER, Message, join_messages, message
from howdah.wire.messages import SnapshotReport

LOGS = sorted((Path(__file__).parent / "earlier_logs").glob("*.jsonl"))
KILLED = message("killed by {signal}", signal="SIGKILL (9)")
ON_NODE = message("{task} on {node}: {exit}", task=TaskId("worker", 1), node="node7", exit=KILLED)


def again(event: Any) -> Any:
    """Return the event as a reader of the event log has it."""
    (read,) = read_log([to_line(event)])
    return read


def test_a_message_is_its_english_text() -> None:
    assert ON_NODE == "worker:1 on node7: killed by SIGKILL (9)"
    assert json.dumps({"text": ON_NODE}) == '{"text": "worker:1 on node7: killed by SIGKILL (9)"}'
    assert str(ValueError(ON_NODE)) is ON_NODE
    assert type(f"{ON_NODE}.") is str
    assert hash(ON_NODE) == hash(str.__str__(ON_NODE))


def test_a_message_is_rendered_in_the_language_of_the_reader() -> None:
    assert render(ON_NODE, "en") == "worker:1 on node7: killed by SIGKILL (9)"
    assert type(render(ON_NODE, "en")) is str
    assert render(ON_NODE, "zh") == "worker:1（node7）：被信号 SIGKILL (9) 终止"


def test_a_sentence_is_not_cut_where_a_value_looks_like_a_part_of_it() -> None:
    text = message("the checkpoints in {uri} can't be read: {reason}", uri="/a can't be read: b", reason="no such file")
    assert render(text, "zh") == "无法读取 /a can't be read: b 中的检查点：no such file"


def test_braces_in_values_are_plain_text() -> None:
    hostile = "{signal} {0} {x.__class__} {{}}"
    text = message("killed by {signal}", signal=hostile)
    assert text == f"killed by {hostile}"
    assert render(text, "zh") == f"被信号 {hostile} 终止"
    assert again(Noted(1.0, text)).text.values == {"signal": hostile}


def test_an_unknown_template_stays_english_around_translated_values() -> None:
    assert render(message("nobody knows {this}: {reason}", this=7, reason=KILLED), "zh") == (
        "nobody knows 7: 被信号 SIGKILL (9) 终止"
    )


def test_joined_parts_are_translated_each() -> None:
    both = join_messages([KILLED, message("exit code {code}", code=3)])
    assert both == "killed by SIGKILL (9); exit code 3"
    assert render(both, "zh") == "被信号 SIGKILL (9) 终止; 退出码 3"
    assert join_messages([]) == ""


def test_the_event_log_has_the_text_and_beside_it_template_and_values() -> None:
    record = json.loads(to_line(Noted(1.0, ON_NODE)))
    assert record["text"] == "worker:1 on node7: killed by SIGKILL (9)"
    exit = {"template": "killed by {signal}", "values": {"signal": "SIGKILL (9)"}}
    values = {"task": "worker:1", "node": "node7", "exit": exit}
    assert record["text_message"] == {"template": "{task} on {node}: {exit}", "values": values}
    assert "text_message" not in json.loads(to_line(Noted(1.0, "plain")))


@pytest.mark.parametrize(
    "event",
    [
        Noted(1.0, ON_NODE),
        Noted(1.0, message("{reason}; asking again in {seconds} s", reason="why", seconds=2.5)),
        Ended(1.0, TaskId("worker", 1), 1, 1, Exit("signal", signal=9, detail=KILLED)),
        JobFinished(1.0, Outcome(State.FAILED, ON_NODE, TaskId("worker", 1), Exit("signal", detail=KILLED))),
        SaveDone(1.0, 1, skipped=(KILLED, "plain", ON_NODE)),
    ],
)
def test_events_come_back_with_their_messages(event: Any) -> None:
    read = again(event)
    assert read == event
    assert templates(read) == templates(event)
    assert to_line(read) == to_line(event)
    assert templates(copy.deepcopy(event)) == templates(event)


def templates(event: Any) -> list[Any]:
    found: list[Any] = []
    for value in vars(event).values():
        found += templates(value) if hasattr(value, "__dataclass_fields__") else []
        for text in value if isinstance(value, tuple) else (value,):
            found += [(text.template, text.values)] if isinstance(text, Message) else []
    return found


def test_the_wire_keeps_them() -> None:
    report = SnapshotReport(1, problem=ON_NODE, skipped=("x", KILLED))
    read = decode(SnapshotReport, json.loads(json.dumps(encode(report))))
    assert read == report
    assert render(read.problem, "zh") == render(ON_NODE, "zh")
    assert render(read.skipped[1], "zh") == render(KILLED, "zh")


@pytest.mark.parametrize(
    "record",
    [
        None,
        7,
        [],
        {},
        {"template": 7, "values": {}},
        {"template": "other text", "values": {}},
        {"template": "worker:1 on node7: killed by SIGKILL (9)", "values": []},
        {"template": "{task}", "values": {"task": ["worker:1"]}},
        {"template": "{task.__class__}", "values": {"task": "worker:1"}},
        {"template": "{a}" * 10_000, "values": {"a": "x" * MAX_LETTERS}},
        {"template": "{a}{a}", "values": {"a": {"template": "{b}{b}", "values": {"b": "x" * MAX_LETTERS}}}},
    ],
)
def test_a_record_that_does_not_make_the_text_leaves_it_plain(record: Any) -> None:
    line = json.dumps({"kind": "Noted", "time": 1.0, "text": ON_NODE, "text_message": record})
    (event,) = read_log([line])
    assert event == Noted(1.0, ON_NODE)
    assert not getattr(event.text, "template", "")


def test_templates_without_text_are_ignored() -> None:
    line = '{"kind":"StacksTaken","time":1.0,"reason_message":{"template":"x","values":{}},"suspects_message":[]}'
    (event,) = read_log([line])
    assert event.reason == ""


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
def test_sentences_of_earlier_logs_are_still_translated(log: Path) -> None:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    view = fold(event for event in read_log(lines) if event is not None)
    of_the_simulator = {"not started", "preempted", "disk: none"}
    texts = {mark.text for mark in view.marks} - of_the_simulator
    assert texts
    assert [text for text in texts if render(text, "zh").isascii()] == []


def test_what_the_view_says_is_translated_by_template() -> None:
    view = fold([GangRestarted(1.0, 2, ON_NODE)])
    assert isinstance(view.marks[0].text, Message)
    assert render(view.marks[0].text, "zh") == "重新启动：worker:1（node7）：被信号 SIGKILL (9) 终止"


def made() -> Iterator[tuple[str, ast.Call, str]]:
    """Yield each call in the source that makes a message: where it is, and its template."""
    for module in source.modules():
        for function in source.functions(module) if "message" in source.text(source.modules()[module]) else ():
            known = assigned(function)
            for node in ast.walk(function):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "message":
                    for template in templates_of(node.args[0], known):
                        yield f"{module}:{node.lineno}", node, template


def assigned(function: source.Function) -> dict[str, list[ast.expr]]:
    known: dict[str, list[ast.expr]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            known.setdefault(node.targets[0].id, []).append(node.value)
    return known


def templates_of(node: ast.expr, known: dict[str, list[ast.expr]]) -> list[str]:
    if isinstance(node, ast.Constant):
        return [str(node.value)]
    if isinstance(node, ast.IfExp):
        return templates_of(node.body, known) + templates_of(node.orelse, known)
    if isinstance(node, ast.Name):
        return [text for value in known.get(node.id, ()) for text in templates_of(value, known)]
    return []


def test_each_template_in_the_source_has_its_chinese() -> None:
    found = [(where, template) for where, _, template in made()]
    assert len(found) > 50
    found += [("advice", template) for template in ADVICE.values()]
    found += [("pending reason", template) for template in REASONS.values()]
    assert [(where, text) for where, text in found if text not in chinese(STORED)] == []


def test_each_message_has_the_values_that_its_template_names() -> None:
    for where, call, template in made():
        given = {keyword.arg for keyword in call.keywords}
        chosen = isinstance(call.args[0], ast.Name)  # other templates have this name, too
        assert chosen or None in given or set(PLACEHOLDER.findall(template)) <= given, where
