"""Tests that a codec which is compiled for its first value is whole for others, whatever breaks the compiling off."""

from __future__ import annotations

import dataclasses
import itertools
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest

from howdah.spec import codec
from howdah.spec.message import Message, Sentence, message

TEMPLATE = message("{count} tasks", count=2)


def first_uses() -> Iterator[tuple[Callable[[], object], object]]:
    """Two uses of the codec with a class that it does not know, and what they return."""

    @dataclasses.dataclass(frozen=True)
    class Checked:
        number: int
        text: str

    @dataclasses.dataclass(frozen=True)
    class Decoded:
        text: Sentence

    Decoded.__annotations__["text"] = Decoded.__dataclass_fields__["text"].type = Sentence  # type: ignore[assignment]
    value = Checked(1, "x")
    yield lambda: codec.is_well_typed(Checked, value), True
    record = codec.encode(Decoded(TEMPLATE))
    yield lambda: _template(codec.decode(Decoded, record).text), TEMPLATE.template


def _template(text: str) -> str:
    return text.template if isinstance(text, Message) else ""


def at_line(number: int, act: Callable[[], None]) -> Callable[..., Any]:
    """A trace function that acts where the codec is about to run its line of this number, as lines are run."""
    lines = itertools.count(1)

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_filename != codec.__file__:
            return None
        if event == "line" and next(lines) == number:
            act()
        return trace

    return trace


def interrupt() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("which", [0, 1], ids=["check", "decode"])
def test_what_an_interrupt_breaks_off_is_begun_anew(which: int) -> None:
    for number in itertools.count(1):
        use, expected = list(first_uses())[which]
        before = sys.gettrace()
        sys.settrace(at_line(number, interrupt))
        try:
            use()
        except KeyboardInterrupt:
            sys.settrace(before)
            assert use() == expected, f"after an interrupt at line {number}"
        else:
            break
        finally:
            sys.settrace(before)
    assert number > 10


@pytest.mark.parametrize("which", [0, 1], ids=["check", "decode"])
def test_another_thread_meanwhile(which: int) -> None:
    for number in itertools.count(1):
        use, expected = list(first_uses())[which]
        found: list[object] = []

        def use_it(use: Callable[[], object] = use, found: list[object] = found) -> None:
            thread = threading.Thread(target=lambda: found.append(use()))
            thread.start()
            thread.join(10)

        before = sys.gettrace()
        sys.settrace(at_line(number, use_it))
        try:
            assert use() == expected
        finally:
            sys.settrace(before)
        if not found:
            break
        assert found == [expected], f"another thread, while this one is at line {number}"
    assert number > 10
