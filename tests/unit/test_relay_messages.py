"""Tests the frames of a stream to a command, and places in tasks as people write them."""

from __future__ import annotations

import pytest

from howdah.interactive.task_files import TaskPlace, split_place
from howdah.wire.relay_messages import MAX_FRAME, AttachRequest, CommandRequest, FrameReader, StreamRequest, frame


def test_frames_arrive_however_they_are_cut() -> None:
    data = frame(0, b"abc") + frame(16) + frame(3, bytes(70_000))
    for size in (1, 2, 7, 100_000):
        reader = FrameReader()
        pieces = [data[at : at + size] for at in range(0, len(data), size)]
        found = [each for piece in pieces for each in reader.feed(piece)]
        assert found == [(0, b"abc"), (16, b""), (3, bytes(70_000))]


def test_a_frame_that_is_too_long_is_refused() -> None:
    with pytest.raises(ValueError, match="at most"):
        list(FrameReader().feed(frame(0, bytes(MAX_FRAME + 1))))


def test_a_request_says_what_it_leads_to() -> None:
    def kind(**wanted: object) -> str:
        return StreamRequest(id="i", task="worker:0", **wanted).kind  # type: ignore[arg-type]

    assert kind(port="80") == "port"
    assert kind(command=CommandRequest(argv=("ls",))) == "command"
    assert kind(command=CommandRequest(terminal=True)) == kind(attach=AttachRequest()) == "shell"
    assert kind() == kind(port="80", attach=AttachRequest()) == ""


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("job-1:worker:0:a/b", TaskPlace("job-1", "worker:0", "a/b")),
        ("application_1_2:ps:12:/tmp/x:y", TaskPlace("application_1_2", "ps:12", "/tmp/x:y")),
        ("job-1::model", TaskPlace("job-1", "", "model")),
        ("job-1:worker:0:", TaskPlace("job-1", "worker:0", ".")),
        ("a/b", None),
        ("./job-1:worker:0:x", None),
        ("C:file", None),
    ],
)
def test_a_place_in_a_task_is_told_from_a_path(text: str, place: TaskPlace | None) -> None:
    assert split_place(text) == place
