"""The engine outside the cluster: it asks the hosts for their resources, and refuses jobs that they can never run."""

from __future__ import annotations

import dataclasses
import getpass
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from howdah.engines import PendingReason
from howdah.engines.detached_master import DetachedMasterEngine
from howdah.engines.options import engine_options
from howdah.engines.ssh.hosts import Host, hosts_of
from howdah.errors import EngineRejected, EngineUnavailable
from howdah.spec import JobSpec, Plan, StagedJob, uris
from howdah.spec.units import memory_text


class SshEngine(DetachedMasterEngine):
    """Runs jobs on the hosts of the setting `ssh.hosts`; their masters run here."""

    name = "ssh"

    @property
    def home(self) -> str:
        """Return the URI of the directory of jobs, which all hosts see."""
        home = self._settings.get("ssh.home", "")
        return home if "://" in home else uris.of_local(home or "/nonexistent/ssh.home")

    def node_count(self) -> int:
        return sum(isinstance(answer, dict) for _, answer in self.ask_hosts())

    def sees(self, path: str | Path) -> bool:
        scheme, _, home = uris.split(self.home)
        return scheme == "file" and Path(path).absolute().is_relative_to(home)

    def ask_hosts(self, directories: Sequence[str] = ()) -> list[tuple[Host, dict[str, Any] | EngineUnavailable]]:
        """Return each host's answer about itself and these directories, or the reason why it does not answer."""

        def ask(host: Host) -> tuple[Host, dict[str, Any] | EngineUnavailable]:
            try:
                return host, host.ask(directories)
            except EngineUnavailable as error:
                return host, error

        hosts = hosts_of(engine_options(JobSpec({}), self._settings, self.name))
        with ThreadPoolExecutor(len(hosts)) as pool:
            return list(pool.map(ask, hosts))

    def plan(self, job: StagedJob) -> Plan:
        if not self._settings.get("ssh.home"):
            allowed = "a directory that all hosts share, or a URI on HDFS or S3"
            raise EngineRejected(f"ssh.home is not set: `howdah config set ssh.home` to {allowed}")
        shared = self._shared_directories(job.job)
        found = self.ask_hosts(tuple(dict.fromkeys(shared.values())))
        answers = {host.name: answer for host, answer in found if isinstance(answer, dict)}
        if not answers:
            raise EngineUnavailable("no host of ssh.hosts answers: " + "; ".join(str(why) for _, why in found))
        problems = [*_not_shared(shared, answers), *_too_large(job.job, answers, len(found))]
        if problems:
            raise EngineRejected("; ".join(problems))
        rooms = {host.name: why["room"] if isinstance(why, dict) else str(why) for host, why in found}
        address = self._settings.get("ssh.address") or _own_address([each["address"] for each in answers.values()])
        staged = dataclasses.replace(job, user=job.user or getpass.getuser())
        return Plan(self.name, staged, {"hosts": rooms, "master": address})

    def _shared_directories(self, job: JobSpec) -> dict[str, str]:
        """Return the directories that this machine and all hosts must share, by the place that names them: the home,
        and for each directory that the job will make the nearest one that exists. In another directory of that name a
        master would not find what a host has stored."""
        home = uris.path(self.home)
        found = {f"ssh.home: {home}": home} if self.home.startswith("file:") else {}
        made = {"checkpoint.path": job.checkpoint.path, "board.path": job.board.path}
        for number, output in enumerate(job.outputs):
            made |= {f"outputs.{number}.path": output.path, f"outputs.{number}.save.to": output.save.to}
        for place, uri in made.items():
            if uri.startswith("file:"):
                path = Path(uris.path(uri))
                is_beside = place.startswith("outputs.") and not uri.endswith("/")
                above = path.parents if is_beside else (path, *path.parents)
                found[f"{place}: {path}"] = str(next(filter(Path.is_dir, above)))
        return found

    def master_environment(self, plan: Plan) -> Mapping[str, str]:
        return {"HOWDAH_HOST": plan.request["master"], "HOWDAH_LISTEN": "0.0.0.0"}  # noqa: S104

    def pending_reasons(self, job_id: str, job: JobSpec | None, missing: Mapping[str, int]) -> list[PendingReason]:
        if not any(not report.state.ended for report in self.describe(job_id)):
            return []
        said = [f"{host.name} has {describe(why['free'])} free" if isinstance(why, dict) else str(why)
                for host, why in self.ask_hosts()]  # fmt: skip
        return [PendingReason("said", {"text": "; ".join(said)})]


def _not_shared(shared: Mapping[str, str], answers: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield which directories of `shared`, by the place that names them, are not the same on all hosts as here."""
    for place, directory in shared.items():
        inode = os.stat(directory).st_ino if os.path.isdir(directory) else 0  # noqa: PTH112, PTH116
        bad = [name for name, answer in answers.items() if not inode or answer["inodes"][directory] != inode]
        if bad:
            what = "be" if place.startswith("ssh.home:") else "be in"
            must = f"must {what} a directory that this machine and all hosts share and may write, or be on HDFS or S3"
            yield f"{place} {must}; {', '.join(bad)}: not the same directory as here"


def _own_address(seen: Sequence[str]) -> str:
    """Return the first address from which a host sees ssh come, and at which masters listen.

    Raises:
        EngineRejected: all of them are of IPv6.
    """
    if seen and all(":" in address for address in seen):
        how = "`howdah config set ssh.address` to a name or an IPv4 address by which they reach it"
        raise EngineRejected(f"hosts see this machine at {seen[0]}, and masters listen at IPv4 addresses alone: {how}")
    return next((address for address in seen if ":" not in address), "")


def describe(room: Mapping[str, Any]) -> str:
    """Return the resources of a host as a text."""
    gpus = room["gpus"] if isinstance(room["gpus"], int) else len(room["gpus"])
    return f"{gpus} GPUs, {room['vcores']} vcores, {memory_text(max(0, room['memory_mib']))}"


def _too_large(job: JobSpec, answers: Mapping[str, Mapping[str, Any]], known: int) -> Iterator[str]:
    """Yield the roles that can never run. Nothing is certain about hosts that do not answer."""
    rooms = [answer["room"] for answer in answers.values()]
    for name, role in job.roles.items() if known == len(answers) else ():
        asked = {key: getattr(role.resources, key) for key in ("gpus", "vcores", "memory_mib")}
        max_tasks = sum(min(room[key] // value for key, value in asked.items() if value) for room in rooms)
        if role.resources.named:
            yield f"role {name!r} asks for {', '.join(role.resources.named)}, which hosts of ssh do not have"
        elif max_tasks < (role.replicas if job.gang else 1):
            has = "; ".join(f"{host}: {describe(answer['room'])}" for host, answer in answers.items())
            yield f"role {name!r} can never run here: {role.replicas} tasks with {describe(asked)} each; {has}"
