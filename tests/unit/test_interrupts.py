"""Tests a second Ctrl-C that comes when the command has done what the first one asked for, and is about to end."""

from __future__ import annotations

import os
import signal

import pytest

from howdah.cli.interrupts import Interrupts


@pytest.fixture(autouse=True)
def pythons_own_handler() -> None:
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_that_comes_late_does_not_kill_the_command_that_another_has_ended() -> None:
    try:
        with Interrupts() as interrupts:
            interrupts.allow()
            with pytest.raises(KeyboardInterrupt):
                os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def test_a_command_can_be_interrupted_after_another_one() -> None:
    with Interrupts():
        pass
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
