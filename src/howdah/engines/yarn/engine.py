"""The engine outside the cluster: a job becomes a YARN application whose application master is howdah's master."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import getpass
import json
import math
import os
import secrets as random
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from howdah.engines import ATTEMPTS_WITHIN_S, MASTER_ATTEMPTS, Engine, PendingReason, Progress, no_progress
from howdah.engines.yarn import admission_checks, conf, placement_constraints, records
from howdah.engines.yarn.diagnostics import clean, explain_wait
from howdah.engines.yarn.nm import launch_context
from howdah.engines.yarn.proto import hadoop_pb2 as pb
from howdah.engines.yarn.rm.application_client_protocol import ResourceManagerClient
from howdah.engines.yarn.tokens import collect
from howdah.engines.yarn.upload import JobUploader, job_text
from howdah.errors import EngineRejected, EngineUnavailable, HowdahError, JobNotFound, StagingError
from howdah.spec import JobReport, JobSpec, Plan, StagedFile, StagedJob, State, TaskId, uris
from howdah.spec.staged import PAGE
from howdah.storage.content_cache import max_unused_s
from howdah.storage.factory import filesystem
from howdah.storage.filesystem import FileSystem
from howdah.storage.segmented_log import find_log
from howdah.wire.credentials import JOB, JOB_KEY, SECRET_PREFIX, Credentials, last_date

if TYPE_CHECKING:
    from howdah.spec.events import Launched

# Modules that only other commands than a submission need are imported where they are needed: that is half of them.
APPLICATION_TYPE = "HOWDAH"
DEFAULT_RACK = "/default-rack"
TAG = "howdah"
"""The tag of every application of howdah, by which it is found again whatever its type."""
MASTER_MEMORY_MIB = 512
AGGREGATION_S = 60.0
"""Limit in seconds for the nodes to store the logs of an ended job; nodes that answer need only a few seconds."""
LATE_S = 86400.0
"""Seconds after a job's end from which no node brings logs any more."""
MAX_PACKED_BYTES = 128 << 10  # a ResourceManager keeps the submission in ZooKeeper, which takes at most 1 MiB
# LogAggregationStatusProto: 6 is "timed out", which a node that comes back does not mind.
_AGGREGATED = (1, 4, 5)  # disabled, succeeded, failed
_UNDER_WAY = (2, 3, 7)  # not started, running, running with failure
_RUNNING, _FINISHED, _FAILED, _KILLED = 5, 6, 7, 8
_UNFINISHED = (1, 2, 3, 4, _RUNNING)  # YarnApplicationStateProto: new, its state is saved, submitted, accepted
_FINAL = {1: State.SUCCEEDED, 2: State.FAILED, 3: State.CANCELLED}


class YarnEngine(Engine):
    """Runs jobs on YARN. Settings: `hadoop_conf_dir` (else HADOOP_CONF_DIR), `staging_dir` (else .howdah in the
    user's home directory on the default file system), `master_memory_mib`, `master_vcores`, `cache_days`."""

    name = "yarn"

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings = settings
        self._configuration = conf.load(settings.get("hadoop_conf_dir") or os.environ.get("HADOOP_CONF_DIR"))

    @property
    def home(self) -> str:
        """Return the URI of the user's staging directory."""
        return self._settings.get("staging_dir") or self._home_of(self._configuration.user)

    @property
    def cluster(self) -> str:
        """Return the addresses of the ResourceManagers."""
        return ",".join(f"{each.host}:{each.port}" for each in self._configuration.resourcemanagers())

    def _home_of(self, user: str) -> str:
        return uris.join(self._configuration.text("fs.defaultFS"), "user", user, ".howdah")

    def _files(self, uri: str) -> FileSystem:
        return filesystem(uri, self._configuration.directory)

    def node_count(self) -> int:
        return asyncio.run(self._node_count())

    async def _node_count(self) -> int:
        async with ResourceManagerClient(self._configuration) as rm:
            return len(await rm.nodes())

    def plan(self, job: StagedJob) -> Plan:
        settings = {**job.settings, **asyncio.run(self._check(job))}
        planned = dataclasses.replace(job, user=self._configuration.user, settings=settings)
        return Plan(self.name, planned, self._request(job))

    async def _check(self, job: StagedJob) -> dict[str, str]:
        """Check requirements that only the cluster can check, and find the racks of the hosts that tasks prefer."""
        wanted = {host for entry in job.inputs for host in entry.hosts}
        wanted.update(host for role in job.job.roles.values() for host in role.placement.prefer)
        async with ResourceManagerClient(self._configuration) as rm:
            await admission_checks.check(rm, job.job)
            nodes = await rm.nodes() if wanted else []
        if any(placement_constraints.tags_of(job.job, role) for role in job.job.roles):
            from howdah.engines.yarn.pending_reasons import setting

            handler = await asyncio.to_thread(setting, self._configuration, placement_constraints.HANDLER)
            if handler == "disabled":
                raise EngineRejected(placement_constraints.DISABLED)
        racks = {node.node.host: node.rack or DEFAULT_RACK for node in nodes if node.node.host in wanted}
        return {placement_constraints.RACKS: json.dumps(racks)} if racks else {}

    def _request(self, staged: StagedJob) -> dict[str, Any]:
        """Return the application as it will be submitted, without its id."""
        job = staged.job
        memory = job.master.memory_mib or int(self._settings.get("master_memory_mib") or MASTER_MEMORY_MIB)
        return {
            "resourcemanagers": [str(address) for address in self._configuration.resourcemanagers()],
            "name": job.name,
            "type": job.application_type or APPLICATION_TYPE,
            "queue": job.queue,
            "priority": job.priority,
            "tags": [TAG, *job.tags, *(f"{key}:{value}" for key, value in job.labels.items())],
            "master": {
                "memory_mib": memory,
                "vcores": job.master.vcores or int(self._settings.get("master_vcores") or 1),
                "node_label": job.master.node_label or job.node_label,
                "command": [staged.python, "-m", "howdah.master"],
            },
            "attempts": job.master.attempts or MASTER_ATTEMPTS,
        }

    def submit(self, plan: Plan, secrets: Mapping[str, str], progress: Progress = no_progress) -> str:
        return asyncio.run(self._submit(plan, secrets, progress))

    async def _submit(self, plan: Plan, secrets: Mapping[str, str], progress: Progress) -> str:
        async with ResourceManagerClient(self._configuration) as rm:
            application = await rm.new_application()
            if problems := list(admission_checks.over_maximum(plan.job.job, application.maximum)):
                raise EngineRejected("\n".join(problems))
            directory = uris.join(self.home, "jobs", records.application_id(application.id))
            files = self._files(self.home)
            try:
                await asyncio.to_thread(files.mkdirs, directory, 0o700)
                await self._start(rm, application.id, plan, directory, secrets, progress)
            except BaseException:
                with contextlib.suppress(HowdahError):  # the submission may have arrived although no answer came
                    await rm.kill(application.id, "its submission failed")
                for undo in (
                    asyncio.to_thread(files.delete, directory),
                    asyncio.to_thread(_abandon, plan.job.job, uris.name(directory), self._configuration.directory),
                ):
                    with contextlib.suppress(HowdahError):  # people need to know the first error
                        await undo
                raise
        return records.application_id(application.id)

    async def _start(
        self,
        rm: ResourceManagerClient,
        application_id: pb.ApplicationId,
        plan: Plan,
        directory: str,
        secrets: Mapping[str, str],
        progress: Progress,
    ) -> None:
        """Upload the files and submit the job. A small job travels with the credentials, because recording it in a file
        takes longer."""
        uploader = JobUploader(self.home, self._configuration.directory, progress)
        placed = await asyncio.to_thread(uploader.upload, plan.job, self._configuration.merged())
        key, text = random.token_bytes(32), job_text(placed)
        application = records.application_id(application_id)
        tokens = await collect(self._configuration, placed)
        self.credentials_end = min(filter(None, map(last_date, tokens.values())), default=0.0)
        if plan.job.job.outputs or plan.job.job.checkpoint.path:
            await asyncio.to_thread(_reserve, plan.job, application, self._configuration.directory)
        record = asyncio.to_thread(uploader.record, text, directory, key)
        held = {SECRET_PREFIX + name: os.fsencode(value) for name, value in secrets.items()} | {JOB_KEY: key}
        packed, programs = zlib.compress(text), (*placed.runtime, *placed.page)
        if len(packed) <= MAX_PACKED_BYTES:
            context = self._context(plan, application_id, programs, Credentials(tokens, held | {JOB: packed}))
            clean = self._clean_cache(rm, uploader)
            # The submission is sent first, because only for it the cluster waits.
            await asyncio.gather(rm.submit(context), record, clean, self._sweep(rm, application))
        else:
            await rm.submit(self._context(plan, application_id, (await record, *programs), Credentials(tokens, held)))

    async def _clean_cache(self, rm: ResourceManagerClient, uploader: JobUploader) -> None:
        with contextlib.suppress(HowdahError):
            reports = await rm.reports(tags=[TAG], users=[self._configuration.user], states=_UNFINISHED)
            oldest = min((self._report(each).submitted for each in reports), default=math.inf)
            await asyncio.to_thread(uploader.clean, max_unused_s(self._settings), lambda: oldest)

    async def _sweep(self, rm: ResourceManagerClient, submitted: str) -> None:
        """Clean up after jobs whose master was killed; steps that fail now are left to the next submission."""
        from howdah.engines import cleanup

        files = self._files(self.home)
        with contextlib.suppress(HowdahError):
            for job_id in await asyncio.to_thread(cleanup.list_unfinished_jobs, files, self.home):
                found = await rm.report(_parse(job_id)) if job_id != submitted else None
                if found and self._report(found).state.ended:
                    with contextlib.suppress(HowdahError):
                        await asyncio.to_thread(
                            cleanup.finish_ended_job, files, self._report(found), self._configuration.directory
                        )

    def _context(
        self, plan: Plan, application_id: pb.ApplicationId, files: Sequence[StagedFile], held: Credentials
    ) -> pb.SubmissionContext:
        request, master = plan.request, plan.request["master"]
        application = records.application_id(application_id)
        command = [*master["command"], "--engine", self.name, "--id", application]
        command += ["--directory", uris.join(self.home, "jobs", application)]
        if JOB not in held.secrets:
            command += ["--job", files[0].name]
        environment = launch_context.common_environment(files, plan.job.user, self._configuration.secure)
        environment["HOWDAH_PAGE"] = f"$PWD/{PAGE}"
        environment["HOWDAH_MEMORY_MIB"] = str(master["memory_mib"])  # it starts others, which must leave it room
        resource = {records.MEMORY: master["memory_mib"], records.VCORES: master["vcores"]}
        context = pb.SubmissionContext(
            application_id=application_id,
            name=request["name"],
            queue=request["queue"] or None,
            type=request["type"],
            tags=request["tags"],
            master=launch_context.context(files, environment, command, held, "stderr"),
            max_attempts=request["attempts"],
            attempt_failures_validity_ms=int(ATTEMPTS_WITHIN_S * 1000),
            keep_containers=True,
            resource=records.to_resource(resource),
            node_label=master["node_label"] or None,
        )
        if request["priority"] is not None:
            context.priority.priority = request["priority"]
        return context

    def describe(self, job_id: str | None = None) -> list[JobReport]:
        with contextlib.suppress(JobNotFound):  # not an application id: no job of YARN, maybe one of another engine
            return asyncio.run(self._describe(job_id))
        return []

    async def _describe(self, job_id: str | None) -> list[JobReport]:
        async with ResourceManagerClient(self._configuration) as rm:
            if job_id is None:
                reports = await rm.reports(tags=[TAG], users=[self._configuration.user])
            else:
                report = await rm.report(_parse(job_id))
                reports = [report] if report else []
        return sorted(map(self._report, reports), key=lambda report: report.submitted, reverse=True)

    def _report(self, report: pb.ApplicationReport) -> JobReport:
        id_ = records.application_id(report.id)
        home = self.home if report.user == self._configuration.user else self._home_of(report.user)
        master = f"http://{report.host}:{report.rpc_port}" if report.state == _RUNNING and report.rpc_port > 0 else ""
        state, text = state_of(report), report.diagnostics
        return JobReport(
            id=id_,
            name=report.name,
            state=state,
            engine=self.name,
            user=report.user,
            queue=report.queue,
            submitted=(report.submitted_ms or report.started_ms) / 1000,
            started=report.launched_ms / 1000,
            finished=report.finished_ms / 1000,
            progress=report.progress,
            diagnostics=explain_wait(text, report.queue) if state is State.PENDING else clean(text),
            master=master,
            tracking_url="" if report.tracking_url == "N/A" else report.tracking_url,
            directory=uris.join(home, "jobs", id_),
            conf_dir=self._configuration.directory,
        )

    def cancel(self, job_id: str) -> None:
        asyncio.run(self._cancel(job_id))

    async def _cancel(self, job_id: str) -> None:
        async with ResourceManagerClient(self._configuration) as rm:
            await rm.kill(_parse(job_id), f"cancelled by {getpass.getuser()}")

    def pending_reasons(self, job_id: str, job: JobSpec | None, missing: Mapping[str, int]) -> list[PendingReason]:
        return asyncio.run(self._pending_reasons(job_id, job, missing))

    async def _pending_reasons(
        self, job_id: str, job: JobSpec | None, missing: Mapping[str, int]
    ) -> list[PendingReason]:
        from howdah.engines.yarn.pending_reasons import pending_reasons

        async with ResourceManagerClient(self._configuration) as rm:
            report = await rm.report(_parse(job_id))
            return [] if report is None else await pending_reasons(rm, self._configuration, report, job, missing)

    def logs(self, job_id: str, task: TaskId | None, stream: str = "") -> Iterator[tuple[str, bytes]]:
        from howdah.engines.yarn.logs import aggregated as logs

        found = self.describe(job_id)
        if not found:
            raise JobNotFound(f"the ResourceManager does not know {job_id}: it keeps the last applications only")
        report = found[0]
        asyncio.run(self._wait_for_aggregation(job_id))
        ran = self._launches(report)
        on = None if task is None else {id_: each.container.node for id_, each in ran.items() if each.task == task}
        files = self._files(self._configuration.text("fs.defaultFS"))
        for container, name, piece in logs.read(files, self._configuration, job_id, report.user, on):
            owner = ran.get(container)
            if name in logs.file_names_of_stream(stream):
                other = "master" if container.endswith("_000001") else container
                who = f"{owner.task} attempt {owner.attempt}" if owner else other
                yield f"{who} {name}", piece

    def logs_complete(self, job_id: str) -> bool:
        return asyncio.run(self._wait_for_aggregation(job_id))

    async def _wait_for_aggregation(self, job_id: str) -> bool:
        """Wait until the nodes have brought the logs to the cluster's file system, which they do after a job ends.
        Return True if they have, or if they will not: a node that was away for long may bring them when it is back."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + AGGREGATION_S
        async with ResourceManagerClient(self._configuration) as rm:
            while True:
                report = await rm.report(_parse(job_id))
                if report is None or report.log_aggregation in _AGGREGATED:
                    return True
                ago = time.time() - report.finished_ms / 1000 if report.finished_ms else 0.0
                if ago > LATE_S:
                    return True
                if report.log_aggregation not in _UNDER_WAY or ago > AGGREGATION_S or clock() >= deadline:
                    return False
                await asyncio.sleep(0.2)

    def _launches(self, report: JobReport) -> dict[str, Launched]:
        """Return the attempt of a task that ran in each container, from the job's event log as far as it goes."""
        from howdah.spec.event_lines import read_lines
        from howdah.spec.events import Launched

        uri = uris.join(report.directory, "events.jsonl")
        try:
            log = find_log(self._files(uri), uri)
            text = log.read().decode("utf-8", "replace") if log is not None else ""
        except (StagingError, EngineUnavailable):
            return {}
        return {e.container.id: e for e in read_lines(text.splitlines()) if isinstance(e, Launched)}


def _reserve(job: StagedJob, job_id: str, conf_dir: str) -> None:
    from howdah.outputs.commit import reserve

    reserve(job.job, job_id, conf_dir, job.sources)


def _abandon(job: JobSpec, job_id: str, conf_dir: str) -> None:
    from howdah.outputs.commit import abandon

    abandon(job, job_id, conf_dir)


def state_of(report: pb.ApplicationReport) -> State:
    """Return howdah's state for a YARN application; a finished application reports its own result."""
    if report.state == _FINISHED:
        return _FINAL.get(report.final_status, State.FAILED)
    return {_RUNNING: State.RUNNING, _FAILED: State.FAILED, _KILLED: State.CANCELLED}.get(report.state, State.PENDING)


def _parse(job_id: str) -> pb.ApplicationId:
    try:
        return records.parse_application_id(job_id)
    except ValueError as error:
        raise JobNotFound(f"job: {error}", "job") from None
