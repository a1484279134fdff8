"""Tests that commands too long for Linux are refused, and no others: the kernel itself is asked."""

from __future__ import annotations

import gc
import subprocess
from collections.abc import Iterator, Mapping
from types import MappingProxyType

import pytest

from howdah.spec import JobSpec, Role
from howdah.spec.exec_limits import MAX_ARGUMENT_BYTES, MAX_TOTAL_BYTES
from howdah.spec.validation import find_mistakes


@pytest.fixture(autouse=True)
def _keep_garbage() -> Iterator[None]:
    """These tests make hundreds of thousands of values, so what earlier tests forgot to close would be collected, and
    its warnings raised, while they run."""
    gc.disable()
    yield
    gc.enable()


def refused(role: Role, **job: object) -> list[str]:
    return [str(mistake) for mistake in find_mistakes(JobSpec({"worker": role}, **job))]  # type: ignore[arg-type]


def runs(*argv: str, env: Mapping[str, str] = MappingProxyType({})) -> bool:
    """Return whether Linux starts a program with these arguments and variables, and no others."""
    try:
        return subprocess.run(["/bin/true", *argv], env=env, timeout=60).returncode == 0
    except OSError:
        return False


def test_the_longest_argument_and_variable() -> None:
    assert runs("x" * MAX_ARGUMENT_BYTES)
    assert not runs("x" * (MAX_ARGUMENT_BYTES + 1))
    assert runs(env={"A": "x" * (MAX_ARGUMENT_BYTES - 2)})
    assert not runs(env={"A": "x" * (MAX_ARGUMENT_BYTES - 1)})
    assert refused(Role("x" * MAX_ARGUMENT_BYTES)) == refused(Role(("a", "x" * MAX_ARGUMENT_BYTES))) == []
    assert "roles.worker.command: is 131072 bytes long" in refused(Role("x" * (MAX_ARGUMENT_BYTES + 1)))[0]
    assert "roles.worker.command.1: is 131072 bytes long" in refused(Role(("a", "x" * (MAX_ARGUMENT_BYTES + 1))))[0]
    assert refused(Role("a", env={"A": "x" * (MAX_ARGUMENT_BYTES - 2)})) == []
    assert "roles.worker.env.A: is 131072 bytes" in refused(Role("a", env={"A": "x" * (MAX_ARGUMENT_BYTES - 1)}))[0]


def test_bytes_count_not_characters() -> None:
    assert "env.A: is 132002 bytes long" in refused(Role("a"), env={"A": "你" * 44_000})[0]


@pytest.mark.parametrize("size", [1, 100, 100_000])
def test_arguments_and_variables_together_have_a_limit(size: int) -> None:
    fit = MAX_TOTAL_BYTES // (size + 9)
    assert runs(*["x" * size] * (fit - 1))
    assert refused(Role(("a", *["x" * size] * (fit - 2)))) == []
    (too_long,) = refused(Role(("a", *["x" * size] * (fit + 1))))
    assert "roles.worker.command: and its variables need" in too_long
