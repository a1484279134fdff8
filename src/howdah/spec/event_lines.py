"""Reads and writes events as lines of JSON, as the event log has them."""

from __future__ import annotations

import json
from typing import Any, Dict, Iterable, Iterator, Mapping, Optional, Union

from howdah.spec.codec import decode, encode, is_well_typed
from howdah.spec.events import KINDS, Event
from howdah.spec.units import LATEST_S


def to_line(event: Event) -> str:
    """Return one line of the event log, with its line end."""
    return json.dumps({"kind": type(event).__name__, **encode(event)}, separators=(",", ":")) + "\n"


def from_record(record: Mapping[str, Any]) -> Optional[Event]:
    """Return the event of one JSON object; None for a kind that this version does not know."""
    kind = KINDS.get(str(record.get("kind")))
    return None if kind is None else decode(kind, record)


def parse_line(line: Union[str, bytes]) -> Optional[Dict[str, Any]]:
    """Return a line's record, as strict JSON (no NaN); None for a line that is cut short or garbled."""
    try:
        record = json.loads(line, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def read_record(record: Mapping[str, Any]) -> Optional[Event]:
    """Return the event of one JSON object; None for an unknown kind, and for one that is garbled."""
    try:
        event = from_record(record)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return event if event is not None and _is_whole(event) else None


def _is_whole(event: Event) -> bool:
    return is_well_typed(type(event), event) and 0 <= event.time <= LATEST_S  # which NaN is not


def read_lines(lines: Iterable[str]) -> Iterator[Event]:
    """Return the events of a log; ignore lines that cannot be read."""
    return (event for event in read_log(lines) if event is not None)


def read_log(lines: Iterable[str]) -> Iterator[Optional[Event]]:
    """Yield the events of a log. Yield None for each line that is cut short or garbled, as killed writers and bad disks
    leave them, and leave out the kinds that this version does not know."""
    for line in lines:
        try:
            record = json.loads(line)
            event = from_record(record)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            if line.strip():
                yield None
            continue
        if event is None:
            continue
        yield event if _is_whole(event) else None
