"""Tests what a NodeManager starts, in a bash script like the one that the NodeManager writes."""

from __future__ import annotations

import subprocess

import pytest

from howdah.engines.yarn.nm import launch_context
from howdah.spec import StagedFile
from howdah.wire import credentials
from howdah.wire.credentials import Credentials

NASTY = ["plain", "two words", "$HOME `id` $(id)", 'it\'s "quoted"', "back\\slash\\", "a\nb", "!x", "*", "", "ünï"]


def script(context: launch_context.pb.LaunchContext) -> str:
    """The lines that ContainerLaunch writes for variables and command, with the log directory filled in."""
    exports = [f'export {entry.key}="{entry.value}"' for entry in context.environment]
    command = " ".join(context.command).replace("<LOG_DIR>/out", "/dev/stdout").removesuffix(" 2>&1")
    return "\n".join([*exports, f'exec /bin/bash -c "{command}"'])


def test_arguments_arrive_as_they_are() -> None:
    context = launch_context.context([], {}, ["printf", "%s\\0", *NASTY], Credentials(), "out")
    done = subprocess.run(["bash", "-c", script(context)], capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == NASTY


@pytest.mark.parametrize("value", NASTY)
def test_variables_arrive_as_they_are(value: str) -> None:
    context = launch_context.context(
        [], {"X": launch_context.literal(value)}, ["printenv", "-0", "X"], Credentials(), "out"
    )
    done = subprocess.run(["bash", "-c", script(context)], capture_output=True, check=True)
    assert done.stdout.decode() == value + "\0"


def test_a_file_as_yarn_localises_it() -> None:
    file = StagedFile("lib", "hdfs://nn:8020/cache/a b?#.zip", "archive", sha256="ab", size=7, modified_ms=9)
    found = launch_context.local_resource(file)
    url = found.resource
    assert (url.scheme, url.host, url.port, url.file) == ("hdfs", "nn", 8020, "/cache/a b?#.zip")
    assert (found.size, found.timestamp, found.type, found.visibility) == (7, 9, 1, launch_context.PRIVATE)


def test_a_nameservice_has_no_port() -> None:
    found = launch_context.local_resource(StagedFile("f", "hdfs://ns/f"))
    assert (found.resource.host, found.resource.port, found.type, found.visibility) == (
        "ns",
        -1,
        2,
        launch_context.APPLICATION,
    )


def test_secrets_are_in_the_credentials_alone() -> None:
    context = launch_context.context([], {}, ["true"], Credentials({}, {"k": b"hunter2"}), "out")
    assert credentials.parse(context.tokens).secrets == {"k": b"hunter2"}
    context.ClearField("tokens")
    assert "hunter2" not in str(context)


def test_the_nodemanagers_variables_arrive_by_howdahs_names() -> None:
    words = ["sh", "-c", 'printf "%s\n%s\n" "$HOWDAH_HOST" "$HOWDAH_CREDENTIALS"']
    given = {"NM_HOST": "node 1", "HADOOP_TOKEN_FILE_LOCATION": "/a directory/tokens"}
    lines = script(launch_context.context([], given, words, Credentials(), "out"))
    done = subprocess.run(["bash", "-c", lines], capture_output=True, check=True, text=True)
    assert done.stdout.splitlines() == list(given.values())
