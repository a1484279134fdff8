"""Tests that an executor runs its program in a container image, on the real podman and the real Docker."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conductor import Conductor
from image_tools import NO_PODMAN, Tool, dockerd, has_podman, podman, root_archive

from howdah.localfiles.container_tools import remove_containers
from howdah.wire.messages import Assignment, Goal, ImageOrder, Phase, Status

Start = Callable[..., Conductor]
IN_IMAGE = "[ ! -e /usr/share ] && echo inside"


@pytest.fixture(scope="module", params=["podman", "docker"])
def tool(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tool]:
    directory = tmp_path_factory.mktemp(request.param)
    if request.param == "docker":
        with dockerd(directory) as found:
            yield found
    elif has_podman():
        with podman(directory) as found:
            yield found
    else:
        pytest.skip(NO_PODMAN)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return root_archive(tmp_path_factory.mktemp("image"))


@pytest.fixture
def conduct(tmp_path: Path, tool: Tool, archive: Path) -> Iterator[Start]:
    masters = []

    def start(
        command: str | tuple[str, ...],
        image: str = "",
        container: str = "c-1",
        before: tuple[str, ...] = (),
        node: dict[str, str] | None = None,
        below: Path | None = None,
        **fields: object,
    ) -> Conductor:
        order = ImageOrder(image or str(archive), fields.pop("mounts", ()), tool.name)  # type: ignore[arg-type]
        directory = (below or tmp_path) / str(len(masters))
        directory.mkdir()
        master = Conductor(directory, Assignment(command, image=order, **fields))  # type: ignore[arg-type]
        masters.append(master)
        given = {**tool.environment, "HOWDAH_CONTAINER": container, **(node or {})}
        master.start(given, {"TOKEN": b"s3cret"}, before)
        return master

    yield start
    for master in masters:
        master.close()
    wait_until(lambda: not tool.containers())


def wait_until(true: Callable[[], object], limit: float = 120.0) -> None:
    deadline = time.monotonic() + limit
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def started(master: Conductor) -> Status:
    master.phase(Phase.JOINED, limit=60)
    master.set_orders(Goal.RUN)
    return master.phase(Phase.RUNNING)


def test_a_program_runs_in_the_image_with_its_directory_variables_and_secrets(
    conduct: Start, tool: Tool, tmp_path: Path
) -> None:
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    (mounted / "file").write_text("mounted\n")
    line = (
        f"{IN_IMAGE}; cat a.txt /data/file; echo $WORD $TOKEN; id -u; echo out > made; echo e >&2;"
        " until [ -e go ]; do sleep 0.1; done"
    )
    master = conduct(line, environment={"WORD": "it's $HOME"}, secrets=("TOKEN",), mounts=(f"{mounted}:/data:ro",))
    target = tmp_path / "elsewhere"
    target.write_text("linked\n")
    (master.work / "a.txt").symlink_to(target)
    started(master)
    wait_until(lambda: b"s3cret" in master.output())
    (name,) = tool.containers()
    shown = tool("inspect", name)
    assert "HOWDAH_CONTAINER=c-1" in shown
    assert "s3cret" not in shown
    words = b"".join(path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists())
    assert b"s3cret" not in words
    (master.work / "go").touch()
    ended = master.phase(Phase.ENDED)
    assert ended.exit is not None
    assert ended.exit.ok, ended.exit
    assert master.output().decode() == f"inside\nlinked\nmounted\nit's $HOME s3cret\n{os.getuid()}\n"
    assert master.output("stderr") == b"e\n"
    assert (master.work / "made").read_text() == "out\n"
    assert (master.work / "made").stat().st_uid == os.getuid()
    assert master.leave() == 0
    assert tool.containers() == []


def test_paths_through_links_lead_to_the_same_place(conduct: Start, tmp_path: Path) -> None:
    (tmp_path / "gpfs").mkdir()
    (tmp_path / "home").symlink_to("gpfs")
    (tmp_path / "gpfs/data").write_text("data\n")
    named = tmp_path / "home"
    checkpoints = {"HOWDAH_CHECKPOINT_DIR": f"file://{named}/ckpt/new"}
    line = f"{IN_IMAGE}; cat link; d=${{HOWDAH_CHECKPOINT_DIR#file://}}; mkdir -p $d; echo step > $d/1"
    master = conduct(line, below=named, environment=checkpoints)
    (master.work / "link").symlink_to(named / "data")
    ended = started(master) and master.phase(Phase.ENDED)
    assert ended.exit is not None
    assert ended.exit.ok, (ended.exit, master.output("stderr"))
    assert master.output().startswith(b"inside\ndata\n")
    assert (tmp_path / "gpfs/ckpt/new/1").read_text() == "step\n"


def test_names_of_files_may_have_any_letter(conduct: Start, tmp_path: Path) -> None:
    target = tmp_path / 't:1,"x".csv'
    target.write_text("odd\n")
    master = conduct("cat in", placeholder_uris={"d": (f"file://{tmp_path}/u%3A2%2C.csv",)})
    (tmp_path / "u:2,.csv").touch()
    (master.work / "in").symlink_to(target)
    ended = started(master) and master.phase(Phase.ENDED)
    assert ended.exit is not None
    assert ended.exit.ok, (ended.exit, master.output("stderr"))
    assert master.output() == b"odd\n"


def test_howdahs_package_is_there_for_the_python_of_the_image(conduct: Start) -> None:
    python = os.path.realpath(sys.executable)
    prefix = str(Path(python).parents[1])
    mounts = tuple(f"{path}:{path}:ro" for path in dict.fromkeys(("/usr", prefix)))
    master = conduct((python, "-c", "from howdah import here; print(here.__name__)"), mounts=mounts)
    ended = started(master) and master.phase(Phase.ENDED)
    assert ended.exit is not None
    assert ended.exit.ok, (ended.exit, master.output("stderr"))


def test_a_python_of_the_image_is_not_looked_for_on_the_node(conduct: Start, tmp_path: Path) -> None:
    own = tmp_path / "bin"
    own.mkdir()
    (own / "python").write_text("#!/bin/sh\necho python of the image\n")
    (own / "python").chmod(0o755)
    master = conduct("python", mounts=(f"{own}:/only/in/the/image:ro",), program_path=("/only/in/the/image",))
    ended = started(master) and master.phase(Phase.ENDED)
    assert ended.exit is not None
    assert ended.exit.ok, (ended.exit, master.output("stderr"))
    assert master.output() == b"python of the image\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to join a group, and rootless podman passes none on")
def test_the_program_is_in_the_users_groups(conduct: Start) -> None:
    master = conduct("id -G", before=("setpriv", "--groups", "0,4242"))
    ended = started(master) and master.phase(Phase.ENDED)
    assert ended.exit is not None
    assert ended.exit.ok, (ended.exit, master.output("stderr"))
    assert master.output() == b"0 4242\n"


def test_stacks_are_those_of_the_program(conduct: Start) -> None:
    master = conduct("echo ready; sleep 1000; true")
    started(master)
    wait_until(lambda: b"ready" in master.output())
    text = master.ask_log("stacks", 0, 1 << 20).text
    assert "sleep 1000" in text
    assert not [word for word in ("conmon", "podman", "docker run") if word in text], text
    master.set_orders(Goal.STOP, stop_s=0.5)
    master.phase(Phase.ENDED)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("exit 7", "exit code 7"),
        (("sh", "-c", "kill -9 $$"), "killed by SIGKILL (9)"),
        ("nothing-of-this-name", "exit code 127: 'nothing-of-this-name' is not found on PATH"),
    ],
)
def test_exit_codes_are_the_programs(command: str | tuple[str, ...], said: str, conduct: Start) -> None:
    master = conduct(command)
    ended = started(master) and master.phase(Phase.ENDED)
    assert str(ended.exit).startswith(said), ended.exit


def test_term_reaches_the_program_and_kill_follows(conduct: Start, tool: Tool) -> None:
    master = conduct("trap 'echo term; touch termed' TERM; echo ready; while :; do sleep 0.1; done")
    started(master)
    wait_until(lambda: b"ready" in master.output())
    master.set_orders(Goal.STOP, stop_s=1.0)
    ended = master.phase(Phase.ENDED)
    assert ended.exit is not None
    assert ended.exit.cause == "stopped"
    assert (master.work / "termed").exists()
    assert master.leave() == 0
    wait_until(lambda: not tool.containers())


def test_too_much_memory_is_named_with_the_figures(conduct: Start) -> None:
    if os.geteuid() and not Path("/sys/fs/cgroup/cgroup.controllers").exists():
        pytest.skip("with version 1 of control groups rootless podman sets no limits")
    master = conduct("head -c 300000000 /dev/zero | sed s/a/b/", memory_mib=48)
    started(master)
    ended = master.phase(Phase.ENDED)
    assert ended.exit is not None
    assert (ended.exit.cause, str(ended.exit)) == ("memory", "killed by the kernel: used 48 MiB of 48 MiB")


def test_the_programs_processes_are_measured(conduct: Start) -> None:
    master = conduct("while :; do :; done")
    started(master)
    status = master.until(lambda status: status.usage.cpu > 0.1)
    assert 0 < status.usage.memory_mib < 30  # the program's alone, without podman's own
    master.set_orders(Goal.STOP, stop_s=0.5)
    master.phase(Phase.ENDED)


def test_a_killed_executor_leaves_no_container(conduct: Start, tool: Tool) -> None:
    master = conduct("echo ready; sleep 1000")
    started(master)
    wait_until(lambda: b"ready" in master.output())
    assert tool.containers()
    assert master.executor is not None
    master.executor.kill()
    wait_until(lambda: not tool.containers())


def test_a_terminated_executor_leaves_no_container(conduct: Start, tool: Tool) -> None:
    master = conduct("echo ready; sleep 1000")
    started(master)
    wait_until(lambda: b"ready" in master.output())
    assert master.executor is not None
    master.executor.send_signal(signal.SIGTERM)
    assert master.exit_status() == 143
    wait_until(lambda: not tool.containers())


def test_what_the_tool_could_not_remove_is_found_by_its_label(
    conduct: Start, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    master = conduct("echo ready; sleep 1000", container="left.1")
    started(master)
    wait_until(lambda: b"ready" in master.output())
    assert master.executor is not None
    if tool.name == "podman":
        os.kill(int(tool("inspect", "--format", "{{.State.ConmonPid}}", *tool.containers())), signal.SIGKILL)
    else:  # which removes all that has run, once it is there again itself
        image = tool("images", "--format", "{{.Repository}}:{{.Tag}}").split()[0]
        tool("create", "--name", "howdah-left.1-never", "--label", "howdah-container=left.1", image, "sh")
    master.executor.kill()
    for name, value in tool.environment.items():
        monkeypatch.setenv(name, value)
    assert remove_containers("other.") == 0
    assert remove_containers("left.") in (1, 2)
    wait_until(lambda: not tool.containers())


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to show podman devices that are not there")
@pytest.mark.parametrize("tool", ["podman"], indirect=True)
def test_granted_gpus_reach_the_container_by_the_container_device_interface(
    conduct: Start, tool: Tool, tmp_path: Path
) -> None:
    devices = [
        {"name": str(number), "containerEdits": {"deviceNodes": [{"path": f"/dev/gpu{number}", "hostPath": path}]}}
        for number, path in enumerate(("/dev/null", "/dev/zero", "/dev/full"))
    ]
    (tmp_path / "etc/cdi").mkdir(parents=True)
    specification = {"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": devices}
    (tmp_path / "etc/cdi/nvidia.json").write_text(json.dumps(specification))
    shown = f'mount -t overlay overlay -o lowerdir={tmp_path}/etc:/etc /etc; exec "$@"'
    master = conduct(
        "ls /dev/gpu*; echo $CUDA_VISIBLE_DEVICES",
        before=("unshare", "--mount", "sh", "-c", shown, "sh"),
        node={"CUDA_VISIBLE_DEVICES": "0,2"},
        gpus=2,
    )
    started(master)
    ended = master.phase(Phase.ENDED)
    assert ended.exit is not None
    assert ended.exit.ok, (ended.exit, master.output("stderr"))
    assert master.output() == b"/dev/gpu0\n/dev/gpu2\n0,1\n"


@pytest.mark.parametrize(
    ("image", "said"),
    [
        ("/no/such.tar", "/no/such.tar does not exist"),
        ("localhost/nothing:1", "image 'localhost/nothing:1' cannot be fetched: "),
    ],
)
def test_an_image_that_is_not_there_is_named(image: str, said: str, conduct: Start) -> None:
    master = conduct("true", image=image)
    ended = master.phase(Phase.ENDED)
    assert said in str(ended.exit)


@pytest.mark.parametrize("line", ["{save}", "{save} 2>&1 | cat", "sh -c '{save}'; true", "{save} & wait"])
def test_every_process_in_the_container_has_its_time(line: str, conduct: Start, tool: Tool) -> None:
    saver = "trap 'echo saving; sleep 1; touch saved; echo saved; exit' TERM; echo ready; while :; do sleep 0.1; done"
    master = conduct(line.replace("{save}", "sh ./save"))
    master.files["save"] = saver
    started(master)
    wait_until(lambda: b"ready" in master.output())
    master.set_orders(Goal.STOP, stop_s=60.0)
    ended = master.phase(Phase.ENDED)
    assert ended.exit is not None
    assert ended.exit.cause == "stopped"
    assert (master.work / "saved").exists()
    assert master.output().endswith(b"saved\n")
    wait_until(lambda: not tool.containers())


def test_what_is_left_in_the_background_is_told_and_has_its_time(conduct: Start) -> None:
    save = "sh -c 'trap \"sleep 1; touch saved; exit\" TERM; touch up; while :; do sleep 0.1; done' &"
    master = conduct(f"{save} while [ ! -e up ]; do sleep 0.1; done; exit 3")
    ended = started(master) and master.phase(Phase.ENDED)
    assert ended.exit is not None
    assert ended.exit.code == 3
    assert (master.work / "saved").exists()
    said = r"\[howdah: the command has ended; what it has left .* killed after 5 s \(.*\): (?:sh|sleep| )+\]"
    assert re.search(said, master.output("stderr").decode())
