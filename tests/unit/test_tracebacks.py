"""Tests finding the exception, and the user's own frames, in a program's last lines."""

from __future__ import annotations

import pytest

from howdah.spec.tracebacks import exception_line, is_lost_connection, lines_of_cause, user_frames

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


LOSS = ["Traceback (most recent call last):", '  File "t.py", line 1, in f', "    g()", "ValueError: loss is nan"]
OTHER = ["Traceback (most recent call last):", '  File "t.py", line 3, in __del__', "AttributeError: no pool"]
GROUP = """\
  + Exception Group Traceback (most recent call last):
  |   File "t.py", line 5, in <module>
  |     raise ExceptionGroup("two failed", es)
  | ExceptionGroup: two failed (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | Exception Group Traceback (most recent call last):
    |   File "t.py", line 2, in a
    | ExceptionGroup: inner (1 sub-exception)
    +-+---------------- 1 ----------------
      | Traceback (most recent call last):
      |   File "t.py", line 1, in a
      |     x = [1
      |       | 2]
      | ValueError: bad a (1)
      +------------------------------------
    +---------------- 2 ----------------
    | Traceback (most recent call last):
    |   File "t.py", line 2, in b
    | TypeError: bad b
    +------------------------------------""".splitlines()
TORCHRUN = """\
W1130 07:19:07.3 8 torch/distributed/elastic/multiprocessing/api.py:900] Sending process 9 closing signal SIGTERM
E1130 07:19:07.4 8 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: 1) local_rank: 1 (pid: 10)
Traceback (most recent call last):
  File "/env/bin/torchrun", line 12, in <module>
    sys.exit(main())
torch.distributed.elastic.multiprocessing.errors.ChildFailedError: 
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
[1]:
  rank      : 0 (local_rank: 0)
  exitcode  : -15 (pid: 9)  (SIGTERM)
  error_file: <N/A>
  traceback : Signal 15 (SIGTERM) received by PID 9
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  rank      : 1 (local_rank: 1)
  exitcode  : 3 (pid: 10)
  error_file: <N/A>
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
============================================================""".splitlines()
KILLED = [
    "  traceback : Signal 11 (SIGSEGV) received by PID 10" if line.startswith("  traceback : To") else line
    for line in TORCHRUN
]
RESET = [*LOSS[:-1], "ConnectionResetError: [Errno 104] Connection reset by peer"]
ACCELERATE = [
    *LOSS,
    "Traceback (most recent call last):",
    '  File "/env/bin/accelerate", line 8, in <module>',
    "subprocess.CalledProcessError: Command '['python', 't.py']' returned non-zero exit status 1.",
]


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([LOSS[0], *LOSS[1:3] * 300, LOSS[3]], "ValueError: loss is nan"),
        (LOSS + [f"detail {number}" for number in range(30)], "ValueError: loss is nan"),
        ([*LOSS, "Exception ignored in: <function Loader.__del__ at 0x7f>", *OTHER], "ValueError: loss is nan"),
        ([*LOSS, "Exception ignored in atexit callback: <function f>", *OTHER], "ValueError: loss is nan"),
        ([*LOSS, "Error in atexit._run_exitfuncs:", *OTHER], "ValueError: loss is nan"),
        (["Exception ignored in: <function f>", *OTHER, *LOSS], "ValueError: loss is nan"),
        (["Exception ignored in: <function f>", *OTHER], "AttributeError: no pool"),
        (GROUP, "ExceptionGroup: two failed (2 sub-exceptions): ValueError: bad a (1)"),
        (LOSS + TORCHRUN, "ValueError: loss is nan"),
        (LOSS + RESET + TORCHRUN, "ValueError: loss is nan"),
        (RESET + TORCHRUN, RESET[-1]),
        (["[rank1]: " + line for line in LOSS] + ["[rank0]: " + line for line in RESET] + TORCHRUN, LOSS[-1]),
        (TORCHRUN, "ChildFailedError: rank 1: exit code 3"),
        (["a warning", *KILLED], "ChildFailedError: rank 1: Signal 11 (SIGSEGV) received by PID 10"),
        ([*LOSS, *["went on"] * 9, *KILLED], "ChildFailedError: rank 1: Signal 11 (SIGSEGV) received by PID 10"),
        (ACCELERATE, "ValueError: loss is nan"),
        (ACCELERATE[4:], ACCELERATE[-1]),
        (["  9%|█ | 1/9 Traceback (most recent call last):", *LOSS[1:]], "ValueError: loss is nan"),
    ],
)
def test_the_first_cause_is_found(lines: list[str], found: str) -> None:
    assert exception_line(lines) == found


def test_a_program_that_went_on_after_a_traceback_did_not_end_by_it() -> None:
    assert exception_line([*LOSS, *["more"] * 8], 3) == LOSS[-1]
    assert exception_line([*LOSS, *["more"] * 9], 3) == ""
    assert exception_line([*LOSS, *["more"] * 8, "2026-11-30 07:00:00 INFO epoch 2"]) == ""


def test_an_exception_that_was_handled_long_before_the_end_did_not_cause_it() -> None:
    traceback = TRACEBACK.splitlines()
    epochs = [f"epoch {number}: accuracy 0.41" for number in range(60)]
    assert exception_line([*traceback, *epochs, "accuracy 0.41 is below the threshold"]) == ""
    text = [f"\tsize mismatch for layer{number}.weight" for number in range(60)]
    assert exception_line([*traceback, *text]) == "model.NoData: nothing left"


def test_what_comes_after_the_cause_is_left_out() -> None:
    late = ["Exception ignored in: <function f>", *OTHER]
    assert lines_of_cause(["[rank0]: before", *LOSS, *late, *TORCHRUN]) == ["before", *LOSS]
    assert user_frames(GROUP) == [1, 2, 6, 10, 11, 17]


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        ("ConnectionResetError: [Errno 104] Connection reset by peer", True),
        ("torch.distributed.DistNetworkError: x", True),
        ("RuntimeError: [../pair.cc:534] Connection closed by peer [10.0.0.1]:1234", True),
        ("torch.distributed.DistBackendError: NCCL error in: x.cpp:2251, remote process exited or there was", True),
        ("ValueError: loss is nan", False),
        ("", False),
    ],
)
def test_which_exceptions_may_be_consequences(text: str, lost: bool) -> None:
    assert is_lost_connection(text) is lost
