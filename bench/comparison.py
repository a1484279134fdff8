"""Compares measured ratios with those that are kept in `ratios.json`."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

FILE = Path(__file__).with_name("ratios.json")
TOLERANCE = 0.10
"""The share by which a median may be above the kept one."""
QUIET_SHARE = 0.75
"""The least share of idle cores beside which ratios of times are kept."""


@dataclass(frozen=True)
class Ratio:
    """A figure over its rival's, its limit's or a yardstick's in the same run: less is better."""

    median: float
    """The median of all rounds."""
    low: float
    """The smallest of all rounds."""
    high: float
    """The largest of all rounds."""
    rounds: int
    """The number of rounds."""

    @classmethod
    def of(cls, values: Sequence[float]) -> Ratio:
        """Return the ratio of several rounds."""
        return cls(statistics.median(values), min(values), max(values), len(values))


@dataclass(frozen=True)
class Kept:
    """What is kept: the ratios by name, and where and when they were measured."""

    ratios: Mapping[str, Ratio]
    """The ratios, by name."""
    date: str = ""
    """The day on which they were measured, as 2026-01-31."""
    machine: Mapping[str, str | int] = field(default_factory=dict)
    """What of the machine changes ratios."""
    idle: float = 1.0
    """The share of its cores that was idle beside the measurement: with other work, ratios of times are rough."""


@dataclass(frozen=True)
class Verdict:
    """What the comparison says about one name."""

    name: str
    """The ratio's name."""
    kind: str
    """`worse`, `missing`, `better`, `same` or `new`."""
    text: str
    """The figures, for people."""

    @property
    def failed(self) -> bool:
        """Return whether somebody must explain or mend it."""
        return self.kind in ("worse", "missing")


def compare(kept: Mapping[str, Ratio], measured: Mapping[str, Ratio], unavailable: Iterable[str] = ()) -> list[Verdict]:
    """Compare medians: worse is more than TOLERANCE above the kept one. A kept ratio that was not measured fails as
    well, unless its rival is `unavailable` on this machine."""
    verdicts = [_judge(name, kept.get(name), ratio) for name, ratio in measured.items()]
    absent = set(kept) - set(measured) - set(unavailable)
    return [*verdicts, *(Verdict(name, "missing", f"not measured; kept {kept[name].median:.3f}") for name in absent)]


def _judge(name: str, before: Ratio | None, now: Ratio) -> Verdict:
    if before is None:
        return Verdict(name, "new", f"{now.median:.3f}, and none is kept")
    change = now.median / before.median - 1
    kind = "worse" if change > TOLERANCE else "better" if change < -TOLERANCE else "same"
    return Verdict(name, kind, f"{now.median:.3f}, kept {before.median:.3f} ({change:+.1%})")


def keep_ratios(before: Kept, now: Kept, times: Iterable[str]) -> Kept:
    """Return what to keep: all of `now` if the cores were idle. If not, the ratios of `times` stay as they were, or
    stay away, because a rough one would hide what becomes slower."""
    if now.idle >= QUIET_SHARE:
        return now
    names = set(times)
    measured = {name: ratio for name, ratio in now.ratios.items() if name not in names}
    stay = {name: ratio for name, ratio in before.ratios.items() if name in names}
    return replace(now, ratios={**measured, **stay})


def load(file: Path = FILE) -> Kept:
    """Return what is kept; nothing when there is no file."""
    if not file.exists():
        return Kept({})
    record = json.loads(file.read_text())
    ratios = {name: Ratio(**values) for name, values in record["ratios"].items()}
    return Kept(ratios, record["date"], record["machine"], record["idle"])


def save(kept: Kept, file: Path = FILE) -> None:
    """Replace what is kept."""
    ratios = {
        name: {key: round(value, 4) for key, value in asdict(ratio).items()} for name, ratio in kept.ratios.items()
    }
    record = {"date": kept.date, "machine": dict(kept.machine), "idle": round(kept.idle, 2), "ratios": ratios}
    file.write_text(json.dumps(record, indent=2) + "\n")
