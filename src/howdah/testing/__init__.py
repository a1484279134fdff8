"""Tests software that builds on howdah: stand-ins for a gang and for an engine's allocator, and the suites that every
engine and every allocator passes (`engine_contract`, `allocator_contract`)."""

from __future__ import annotations

from howdah.testing.gang import OK as OK
from howdah.testing.gang import FakeAllocator as FakeAllocator
from howdah.testing.gang import Gang as Gang
from howdah.testing.gang import job as job

__all__ = ["OK", "FakeAllocator", "Gang", "job"]
