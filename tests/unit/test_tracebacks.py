"""Tests finding the exception, and the user's own frames, in a program's last lines."""

from __future__ import annotations

import pytest

from howdah.spec.tracebacks import exception_line, user_frames

TRACEBACK = """\
epoch 1: loss 0.5
Traceback (most recent call last):
  File "/home/ann/train.py", line 9, in <module>
    main()
  File "/opt/env/lib/python3.11/site-packages/torch/nn/module.py", line 1, in __call__
    return forward(x)
           ^^^^^^^^^^
  File "/home/ann/model.py", line 3, in forward
    raise NoData("nothing left")
model.NoData: nothing left"""


@pytest.mark.parametrize("prefix", ["", "[rank0]: ", "[1]: "])
def test_the_exception_and_the_users_frames(prefix: str) -> None:
    lines = [f"{prefix}{line}" for line in TRACEBACK.splitlines()]
    assert exception_line(lines) == "model.NoData: nothing left"
    assert user_frames(lines) == [2, 3, 7, 8]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"{TRACEBACK}\n\nDuring handling of the above exception, another exception occurred:\n\n"
         'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nKeyError: 1', "KeyError: 1"),
        ("    x = y\nValueError: loss is not finite: nan\nends", "ValueError: loss is not finite: nan"),
        ("torch.cuda.OutOfMemoryError: CUDA out of memory.", "torch.cuda.OutOfMemoryError: CUDA out of memory."),
        ("Traceback (most recent call last):\n  File", ""),
        ("2026 ERROR: no disk\nKilled", ""),
        ("", ""),
    ],
)  # fmt: skip
def test_what_counts_as_the_exception(text: str, found: str) -> None:
    assert exception_line(text.splitlines()) == found


def test_a_message_of_many_letters_is_cut() -> None:
    assert len(exception_line(["Traceback (most recent call last):", "E: " + "x" * 5000])) == 300
