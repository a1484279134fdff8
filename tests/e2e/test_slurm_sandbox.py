"""Tests that the sandbox is a real Slurm for whoever knows only SLURM_CONF, and that it stops what it has started."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from submitted_job import until

from howdah.errors import EngineUnavailable, SpecError, StagingError
from howdah.sandbox import SlurmSandbox, slurm_conf
from howdah.sandbox.process import with_variables
from howdah.sandbox.slurm_conf import SlurmShape

HOWDAH = str(Path(sys.executable).with_name("howdah"))


@pytest.fixture(scope="session")
def sandbox() -> None:
    """Start no Hadoop for these tests."""


@pytest.fixture
def small(tmp_path: Path) -> Iterator[SlurmSandbox]:
    with SlurmSandbox(tmp_path / "s", SlurmShape(nodes=1, gpus=0)) as box:
        yield box


def ask(*command: str, **environment: str) -> str:
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def runs(pid_file: Path) -> bool:
    """Return whether the process runs; one that has ended may stay a zombie where nobody waits for it."""
    try:
        return bool(Path("/proc", pid_file.read_text().strip(), "cmdline").read_bytes())
    except OSError:
        return False


def test_three_nodes_of_four_gpus(slurm: SlurmSandbox) -> None:
    rows = ask("sinfo", "-hNp", "main", "-o", "%N %c %m %G").splitlines()
    assert rows == [f"n{number} 8 8192 gpu:4" for number in (1, 2, 3)]


def test_gpus_are_given_to_programs(slurm: SlurmSandbox) -> None:
    assert ask("srun", "-n1", "--gpus-per-task=2", "printenv", "CUDA_VISIBLE_DEVICES") == "0,1\n"


def test_three_partitions(slurm: SlurmSandbox) -> None:
    assert ask("sinfo", "-ho", "%P %l").split() == ["main*", "infinite", "preemptable", "infinite", "short", "2:00"]


def test_jobs_are_accounted_for(slurm: SlurmSandbox) -> None:
    number = ask("sbatch", "--parsable", "--output=/dev/null", "--wrap", "exit 3").strip()
    row = ("sacct", "-nPX", "-j", number, "-o", "State,ExitCode,Account")
    until(lambda: ask(*row) == "FAILED|3:0|howdah\n", "the row of a job that ended")


def test_an_account_must_exist(slurm: SlurmSandbox) -> None:
    done = subprocess.run(["srun", "-A", "nosuch", "true"], capture_output=True, text=True, timeout=60)
    assert "Invalid account" in done.stderr


def test_a_lost_node_takes_its_programs_along_and_comes_back(slurm: SlurmSandbox, tmp_path: Path) -> None:
    line = ("sbatch", "--parsable", "-w", "n2", "--output=/dev/null", "--no-requeue", "--wrap")
    number = ask(*line, f"echo $$ > {tmp_path}/pid; sleep 600").strip()
    until((tmp_path / "pid").exists, "the start of a program")
    slurm.lose_node("n2")
    assert not runs(tmp_path / "pid")
    assert not slurm.is_up()
    slurm.start("n2")
    assert slurm.is_up()
    ask("scancel", number)  # Slurm would miss it only minutes later


def command_lines() -> list[str]:
    """Return the command lines of all processes."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return found


def test_a_lost_node_has_no_last_words(slurm: SlurmSandbox, tmp_path: Path) -> None:
    """An srun elsewhere hears nothing of a program's death from a node that has no power."""
    script = f"srun -w n3 -N1 -n1 --overlap sh -c 'echo > {tmp_path}/pid; exec sleep 600' 2> {tmp_path}/said; sleep 600"
    number = ask("sbatch", "--parsable", "-w", "n1,n3", "--no-kill", "--output=/dev/null", "--wrap", script).strip()
    until((tmp_path / "pid").exists, "the start of a program")
    try:
        steps = [line for line in command_lines() if line.startswith(f"slurmstepd: [{number}")]
        assert len(steps) == 2, "the batch step on n1, and a step on n3"
        slurm.lose_node("n3")
        steps = [line for line in command_lines() if line.startswith(f"slurmstepd: [{number}")]
        assert [line.strip() for line in steps] == [f"slurmstepd: [{number}.batch]"]
        until(lambda: "Node failure on n3" in (tmp_path / "said").read_text(), "what srun says")
        assert "Killed" not in (tmp_path / "said").read_text()
    finally:
        slurm.start("n3")
        ask("scancel", number)


def test_a_lost_batch_host_takes_the_sruns_along(slurm: SlurmSandbox, tmp_path: Path) -> None:
    """Also those that have a session, an environment and a parent of their own."""
    environment = f"env -i PATH=$PATH SLURM_CONF={slurm.run_dir}/slurm.conf"
    step = f"srun --jobid=$SLURM_JOB_ID -w n3 -N1 -n1 --overlap sh -c 'echo > {tmp_path}/pid; exec sleep 600'"
    script = f"({environment} setsid {step} &) ; sleep 600"
    number = ask("sbatch", "--parsable", "-w", "n2,n3", "--no-kill", "--output=/dev/null", "--wrap", script).strip()
    until((tmp_path / "pid").exists, "the start of a program")
    try:
        assert [line for line in command_lines() if f"--jobid={number} " in line]
        slurm.lose_node("n2")
        assert not [line for line in command_lines() if f"--jobid={number} " in line]
    finally:
        slurm.start("n2")
        ask("scancel", number)


def test_a_node_with_a_longer_name_is_another_one(tmp_path: Path) -> None:
    with SlurmSandbox(tmp_path / "s", SlurmShape(nodes=10, gpus=0)) as box:
        box.lose_node("n1")
        assert [daemon.name for daemon in box.status() if not daemon.up] == ["n1"]


def test_two_slurms_count_their_jobs_from_different_numbers(slurm: SlurmSandbox) -> None:
    port = slurm_conf_value("SlurmctldPort")
    assert slurm_conf_value("FirstJobId") == f"{port}01"
    assert int(ask("sbatch", "--parsable", "--output=/dev/null", "--wrap", "true")) >= int(f"{port}01")


@pytest.mark.skipif(not slurm_conf.address()[1], reason="the name of this host does not mean loopback")
def test_the_daemons_listen_on_loopback_alone(slurm: SlurmSandbox) -> None:
    ports = {int(daemon.address.rpartition(":")[2]) for daemon in slurm.status() if daemon.address}
    rows = [line.split()[1:4] for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    listening = [local.split(":") for local, _, state in rows if state == "0A"]
    assert {address[-2:] for address, port in listening if int(port, 16) in ports} == {"7F"}


def slurm_conf_value(name: str) -> str:
    return next(line for line in ask("scontrol", "show", "config").splitlines() if line.startswith(name)).split()[2]


def test_the_command_line(tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tmp_path_factory.mktemp("home")  # a socket's path has 107 bytes at most
    home = {"HOWDAH_HOME": str(directory)}
    assert "2 nodes" in ask(HOWDAH, "sandbox", "up", "--slurm", "--nodes", "2", **home)
    try:
        daemons = [json.loads(line) for line in ask(HOWDAH, "sandbox", "status", "--json", **home).splitlines()]
        assert [daemon["name"] for daemon in daemons] == ["munged", "mariadbd", "slurmdbd", "slurmctld", "n1", "n2"]
        assert all(daemon["up"] for daemon in daemons)
        line = ask(HOWDAH, "sandbox", "env", **home)
        assert ask("/bin/sh", "-c", f"{line}sinfo -hNp main -o %N").split() == ["n1", "n2"]
    finally:
        ask(HOWDAH, "sandbox", "down", "--slurm", **home)
    assert not (directory / "state" / "sandbox-slurm").exists()


def test_down_leaves_no_process_and_no_file(small: SlurmSandbox, tmp_path: Path) -> None:
    environment = small.env()
    ask("sbatch", "--output=/dev/null", "--wrap", f"echo $$ > {tmp_path}/pid; trap '' TERM; sleep 600", **environment)
    until((tmp_path / "pid").exists, "the start of a program")
    with subprocess.Popen(["sleep", "600"], env={**os.environ, **environment}) as bystander:
        small.down()
        assert bystander.poll() is None, "a program that only knows this Slurm is not the sandbox's"
        bystander.kill()
    assert not small.run_dir.exists()
    assert not runs(tmp_path / "pid")
    assert with_variables({"HOWDAH_SANDBOX": str(small.run_dir)}) == []


def test_down_can_keep_the_accounts(small: SlurmSandbox) -> None:
    number = ask("sbatch", "--parsable", "--output=/dev/null", "--wrap", "true", **small.env()).strip()
    row = ("sacct", "-nPX", "-j", number, "-o", "State")
    until(lambda: ask(*row, **small.env()) == "COMPLETED\n", "the row of a job that ended")
    small.down(keep=True)
    assert not small.is_up()
    small.up()
    assert ask(*row, **small.env()) == "COMPLETED\n"


def test_one_shape_at_a_time(small: SlurmSandbox) -> None:
    with pytest.raises(SpecError, match="down"):
        SlurmSandbox(small.run_dir, SlurmShape(nodes=2)).up()


def test_a_daemon_that_ends_at_once_is_named(small: SlurmSandbox) -> None:
    small.stop("slurmctld")
    with (small.run_dir / "slurm.conf").open("a") as conf:
        conf.write("SchedulerType=sched/nosuch\n")  # which the clients do not read
    with pytest.raises(EngineUnavailable, match="slurmctld ended while starting"):
        small.up()


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="nodes"):
        SlurmSandbox(tmp_path, SlurmShape(nodes=0))
    with pytest.raises(StagingError, match="too long"):
        SlurmSandbox(tmp_path / ("x" * 100)).up()
    (tmp_path / "mine").write_text("")
    with pytest.raises(StagingError, match="not empty"):
        SlurmSandbox(tmp_path).up()
