"""The engine as clients use it: it submits a job as a Job of Kubernetes, and reads back its state."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import getpass
import json
import math
import os
import time
import urllib.parse
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from secrets import token_bytes, token_hex
from typing import TYPE_CHECKING, Any

from howdah.engines import NO_PREFERENCES, Engine, PendingReason, Progress, cleanup, no_progress
from howdah.engines.job_files import JobFiles, upload
from howdah.engines.kubernetes import manifests, master_start
from howdah.engines.kubernetes.admission_checks import check_named_objects, check_quotas, refusal_text
from howdah.engines.kubernetes.api import MERGE, ApiRefused, KubernetesApi, Object
from howdah.engines.kubernetes.job_state import ENDING, epoch, job_condition, outcome_of, state_of, submission_time
from howdah.engines.kubernetes.pod_status import condition, container_state, name_of, waits_for
from howdah.engines.options import engine_options
from howdah.engines.shared_home import SharedHome
from howdah.errors import EngineRejected, HowdahError, JobNotFound, SpecError
from howdah.outputs.commit import abandon, reserve
from howdah.spec import JobReport, JobSpec, Plan, StagedJob, State, TaskId, uris
from howdah.spec.codec import encode
from howdah.storage import object_stores
from howdah.storage.content_cache import Cache, max_unused_s
from howdah.storage.factory import filesystem
from howdah.storage.filesystem import FileSystem
from howdah.wire.credentials import JOB, JOB_KEY, SECRET_PREFIX, Credentials, parse

if TYPE_CHECKING:
    from howdah.engines.kubernetes.port_forward import PodForward

PREFIX = "kubernetes-"
CLEAN_S, LOST_SUBMISSION_S = 0.3, 3600.0
MAX_PACKED_BYTES = 600_000  # a Secret has 1 MiB at most
SIGNED_S = 7 * 86400  # the longest that S3 allows
ORIGIN = "origin.json"
"""The file of a job's directory that names the cluster, the namespace and the user to which the job belongs."""
_PLANNED = PREFIX + "plan"


class KubernetesEngine(Engine):
    """Runs jobs in one namespace of a cluster."""

    name = manifests.ENGINE
    home_protects_secrets = False  # an object store has no file modes, and pods may run as root on any volume

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings, self._conf_dir = settings, settings.get("hadoop_conf_dir", "")
        self._opened: KubernetesApi | None = None
        self._namespace_uid: str | None = None
        self._forwards: dict[tuple[str, int | None], PodForward] = {}

    @property
    def has_tunnel(self) -> bool:  # type: ignore[override]
        """Return whether this process reaches pods by forwarded ports."""
        return bool(self._forwards)

    @property
    def _api(self) -> KubernetesApi:
        if self._opened is None:
            self._opened = KubernetesApi.of_settings(self._settings)
        return self._opened

    def _own_setting(self, name: str) -> str:
        return self._settings.get(f"{manifests.ENGINE}.{name}") or ""

    @property
    def home(self) -> str:
        """Return the URI of the directory of jobs, which this machine and the pods reach."""
        home = self._own_setting("home")
        if not home.startswith(("/", "file:", *(f"{scheme}://" for scheme in object_stores.CLIENTS))):
            allowed = "a directory that this machine and the pods see, or a place on an object store"
            raise SpecError.at(
                "kubernetes.home", f"is {home!r}, must be {allowed}: /mnt/team/howdah, s3://bucket/howdah"
            )
        return home if "://" in home else uris.of_local(home)

    def job_key(self, report: JobReport) -> bytes | None:
        is_over = not self._files.exists(uris.join(report.directory, "key"))  # an empty file: the key is in a Secret
        found = None if is_over else self._api.find(self._api.path("secrets", report.id))
        return parse(base64.b64decode(found["data"]["credentials"])).secrets[JOB_KEY] if found is not None else None

    @property
    def _files(self) -> FileSystem:
        return filesystem(self.home, self._conf_dir)

    def _directory(self, job_id: str) -> str:
        return uris.join(self.home, "jobs", job_id)

    @property
    def cluster(self) -> str:
        """Return the API server's URL and the namespace."""
        return f"{self._api.cluster.server} {self._api.namespace}"

    def sees(self, path: str | Path) -> bool:
        texts = filter(None, self._own_setting("volumes").split(","))
        volumes = [manifests.Volume.parse(text, "kubernetes.volumes") for text in texts]
        return any(volume.sees(Path(path).absolute()) for volume in volumes)

    def node_count(self) -> int:
        try:
            nodes = self._api.get("/api/v1/nodes")["items"]
        except ApiRefused:  # most users may not look at nodes
            return 1
        return sum(condition({**node, "spec": {}}, "Ready") is not None for node in nodes)

    # Submission

    def plan(self, job: StagedJob) -> Plan:
        home, options = self.home, engine_options(job.job, self._settings, manifests.ENGINE)
        _refuse_unwritable_path("kubernetes.home", home, manifests.job_volumes(job.job, options))
        _refuse_foreign_keys(job.job)
        _refuse_unmounted_paths(job, options)
        staged = dataclasses.replace(job, python=job.python or "python3", user=job.user or getpass.getuser())
        own = manifests.master_job(_PLANNED, staged, options, self._settings)
        template = own["spec"]["template"]
        master = {**template, "metadata": {**template["metadata"], "name": f"{_PLANNED}-{manifests.MASTER}"}}
        pods = {}
        for number, role in enumerate(job.job.roles):
            name = f"{_PLANNED}-{number}"
            pods[role] = manifests.task_pod(
                _PLANNED, staged, options, role, name, NO_PREFERENCES, secret=_PLANNED, variables={}
            )
        tried = [("its Job", "jobs", own), ("its master's pod", "pods", master)]
        for what, kind, body in [*tried, *((f"a pod of {role}", "pods", pod) for role, pod in pods.items())]:
            try:
                self._api.create(kind, body, dry_run=True)
            except ApiRefused as error:
                if not error.is_quota:  # a job waits for what others use
                    raise EngineRejected(refusal_text(what, error, self._api)) from error
        check_named_objects(self._api, [master, *pods.values()])
        check_quotas(self._api, job.job, pods, master)
        where = {"server": self._api.cluster.server, "namespace": self._api.namespace}
        return Plan(manifests.ENGINE, staged, {**where, "job": own, "pods": pods})

    def submit(self, plan: Plan, secrets: Mapping[str, str], progress: Progress = no_progress) -> str:
        job_id = f"{PREFIX}{time.strftime('%Y%m%d-%H%M%S')}-{token_hex(2)}"
        staged, api, options = plan.job, self._api, engine_options(plan.job.job, self._settings, manifests.ENGINE)
        files, directory = self._files, self._directory(job_id)
        origin = {"cluster": self._find_namespace_uid(), "user": staged.user}
        placed = upload(staged, Cache(self.home, self._conf_dir, progress))
        if self.home.startswith("file:"):  # or each pod would unpack a thousand files
            home = SharedHome(Path(uris.path(self.home)))
            for file in (*placed.page, *(each for each in placed.runtime if each.kind == "archive")):
                home.unpacked(file)
        try:
            made = api.create("jobs", manifests.master_job(job_id, staged, options, self._settings))
            owner = manifests.owner_of(job_id, made["metadata"]["uid"])
            files.mkdirs(directory, 0o700)
            key, text = token_bytes(32), json.dumps(encode(placed), separators=(",", ":")).encode()
            files.write_bytes(uris.join(directory, ORIGIN), json.dumps(origin).encode(), 0o600)
            files.write_bytes(uris.join(directory, "job.json"), text, 0o600)
            files.write_bytes(uris.join(directory, "key"), b"", 0o600)  # says that the job is not over
            reserve(staged.job, job_id, self._conf_dir, staged.sources)
            held = {SECRET_PREFIX + name: os.fsencode(value) for name, value in secrets.items()} | {JOB_KEY: key}
            data = self._master_files(placed, directory, text, held)
            api.create("configmaps", manifests.bootstrap_map(job_id, owner))
            api.create("secrets", manifests.secret(job_id, job_id, data, owner))
            about = {"annotations": {manifests.SUBMITTED: f"{time.time():.3f}"}}
            api.call("PATCH", api.path("jobs", job_id), {"metadata": about, "spec": {"suspend": False}}, MERGE)
        except BaseException:
            self._undo_submission(job_id, staged.job)
            raise
        self._sweep()
        return job_id

    def _undo_submission(self, job_id: str, job: JobSpec | None) -> None:
        """Remove the parts of a job whose submission was not completed. `job` is None if it is not known."""
        for undo in (
            lambda: self._api.delete("jobs", job_id),
            lambda: abandon(job, job_id, self._conf_dir) if job is not None else None,
            lambda: self._files.delete(self._directory(job_id)),
        ):
            with contextlib.suppress(HowdahError):  # people need to know the first error
                undo()

    def _master_files(
        self, placed: StagedJob, directory: str, text: bytes, held: Mapping[str, bytes]
    ) -> dict[str, bytes]:
        """Return the files of the Secret that the master's pod mounts."""
        arguments = {"--engine": manifests.ENGINE, "--id": uris.name(directory), "--directory": directory}
        packed, needed = zlib.compress(text), [file.uri for file in (*placed.runtime, *placed.page)]
        if len(packed) > MAX_PACKED_BYTES:
            arguments["--job"] = uris.join(directory, "job.json")
            needed.append(arguments["--job"])
        else:
            held = {**held, JOB: packed}
        stored = [uri for uri in needed if not uri.startswith("file:")]
        urls = {uri: filesystem(uri, self._conf_dir).signed_url(uri, SIGNED_S) for uri in stored}
        signed = {"urls": urls, "until": time.time() + SIGNED_S, "valid_s": SIGNED_S}
        return {
            master_start.NAME: Path(master_start.__file__).read_bytes(),
            master_start.ARGUMENTS: json.dumps(arguments).encode(),
            master_start.SIGNED: json.dumps(signed).encode(),
            "credentials": Credentials(secrets=dict(held)).to_bytes(),
        }

    def _sweep(self) -> None:
        """Clean up after submissions and masters that were killed; steps that fail now are left to the next time."""
        with contextlib.suppress(HowdahError):
            jobs = self._list("jobs", **self._user_labels)
            living = {
                name_of(job): submission_time(job) for job in jobs if job_condition(job, "Complete", "Failed") is None
            }
            oldest = min(living.values(), default=math.inf)
            Cache(self.home, self._conf_dir).clean(max_unused_s(self._settings), lambda: oldest, limit_s=CLEAN_S)
            for job in jobs:
                annotations = job["metadata"].get("annotations") or {}
                is_incomplete = job["spec"].get("suspend") and manifests.SUBMITTED not in annotations
                if is_incomplete and time.time() - submission_time(job) > LOST_SUBMISSION_S:
                    found = JobFiles(self._directory(name_of(job)), self._conf_dir).submitted()
                    self._undo_submission(name_of(job), found[0].job if found and found[0] else None)
            for job_id in cleanup.list_unfinished_jobs(self._files, self.home):
                if job_id not in living and self._is_own(job_id, getpass.getuser()):
                    with contextlib.suppress(HowdahError):
                        for report in self.describe(job_id):
                            if report.state.ended:
                                cleanup.finish_ended_job(self._files, report, self._conf_dir)
                                self._delete_secrets(job_id)

    def _delete_secrets(self, job_id: str) -> None:
        """Delete the secrets that the Job of a killed master would keep for days."""
        for secret in self._list("secrets", **{manifests.JOB: job_id}):
            self._api.delete("secrets", name_of(secret))

    def _is_own(self, job_id: str, user: str = "") -> bool:
        """Return whether a job whose directory is in the home belongs to this namespace and this user: others may keep
        their jobs there, too. A job without a record of that does not belong to them."""
        uri, uid = uris.join(self._directory(job_id), ORIGIN), self._find_namespace_uid()
        with contextlib.suppress(HowdahError, ValueError, KeyError, TypeError):
            origin = json.loads(self._files.read_bytes(uri))
            return bool(uid) and origin["cluster"] == uid and user in ("", origin["user"])
        return False

    def _find_namespace_uid(self) -> str:
        """Return a text that no other namespace has, on this cluster or another one; "" if it is not known. It is the
        uid of an object that every namespace has and that everyone who may submit may read, because not everybody may
        read the namespace itself. (The server's URL depends on the place from which one connects, and two clusters may
        have the same URL.)"""
        if self._namespace_uid is None:
            self._namespace_uid = ""
            with contextlib.suppress(ApiRefused):
                found = self._api.find(self._api.path("configmaps", "kube-root-ca.crt"))
                self._namespace_uid = str(found["metadata"]["uid"]) if found is not None else ""
        return self._namespace_uid

    # Jobs

    @property
    def _user_labels(self) -> dict[str, str]:
        """Return the labels of this user's objects."""
        return {manifests.USER: manifests.label(getpass.getuser())}

    def _list(self, kind: str, **labels: str) -> list[Object]:
        """Return the Jobs, or pods, with these labels."""
        selector = ",".join(f"{name}={value}" for name, value in labels.items())
        found: list[Object] = self._api.get(self._api.path(kind, labelSelector=selector))["items"]
        return [each for each in found if each["metadata"]["name"].startswith(PREFIX)]

    def _master_pods(self, **labels: str) -> dict[str, Object]:
        """Return the newest pod of each job's master, by the job's id."""
        found = self._list("pods", **labels, **{manifests.ROLE: manifests.MASTER})
        newest_last = sorted(found, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))
        return {pod["metadata"]["labels"][manifests.JOB]: pod for pod in newest_last}

    def describe(self, job_id: str | None = None) -> list[JobReport]:
        if job_id is None:
            pods = self._master_pods(**self._user_labels)
            found = {job["metadata"]["name"]: job for job in self._list("jobs", **self._user_labels)}
            reports = [self._report(name, job, pods.get(name)) for name, job in found.items()]
        elif not job_id.startswith(PREFIX) or "/" in job_id:
            return []
        else:
            pods = self._master_pods(**{manifests.JOB: job_id})
            reports = [self._report(job_id, self._api.find(self._api.path("jobs", job_id)), pods.get(job_id))]
        return sorted(filter(None, reports), key=lambda report: report.submitted, reverse=True)

    def _report(self, job_id: str, job: Object | None, pod: Object | None) -> JobReport | None:
        """Return the report of a job; None if neither the namespace nor the home knows it as one of this namespace."""
        directory, queue = self._directory(job_id), self._api.namespace
        common: dict[str, Any] = {"id": job_id, "engine": manifests.ENGINE, "queue": queue, "directory": directory}
        if job is None:
            return self._report_of_files(common, pod)
        annotations = job["metadata"].get("annotations") or {}
        end = outcome_of(pod)
        if end is None and (manifests.CANCELLED in annotations or job_condition(job, *ENDING) is not None):
            end = self._recorded_end(directory)  # the master's pod knows it, but is removed before the Job has ended
        state, text, finished = end or state_of(job, pod)
        running = container_state(pod, "running") if pod is not None else None
        return JobReport(
            **common,
            name=annotations.get(manifests.NAME, ""),
            state=state,
            user=annotations.get(manifests.OWNER, ""),
            submitted=submission_time(job),
            started=epoch((running or {}).get("startedAt") or job["status"].get("startTime")),
            finished=finished,
            diagnostics=text,
            master=self._master_address(directory, pod) if state is State.RUNNING else "",
            conf_dir=self._conf_dir,
        )

    def _master_address(self, directory: str, pod: Object | None) -> str:
        """Return the address that this pod's master has recorded; "" if there is none yet."""
        address = str((pod or {}).get("status", {}).get("podIP") or "")
        with contextlib.suppress(HowdahError, ValueError, KeyError):
            url = JobFiles(directory, self._conf_dir).master_url()
            return url if address and f"//{address}:" in url else ""
        return ""

    def _recorded_end(self, directory: str) -> tuple[State, str, float] | None:
        """Return the end of a job by its event log: the pod of its master, and its node, may be gone."""
        with contextlib.suppress(HowdahError):
            view, _ = JobFiles(directory, self._conf_dir).view()
            if view.outcome is not None:
                return view.state, view.outcome.diagnostics, view.finished
        return None

    def _report_of_files(self, common: Mapping[str, Any], pod: Object | None) -> JobReport | None:
        """Return the report of a job whose Job is no longer in the cluster; its master may not have ended yet."""
        files = JobFiles(common["directory"], self._conf_dir)
        found = files.submitted()
        if found is None:
            return None
        (staged, submitted), (view, changed) = found, files.view()
        if not view.state.ended and not self._is_own(common["id"]):
            return None
        runs = not view.state.ended and pod is not None and container_state(pod, "terminated") is None
        gone = "its Job is not in the cluster any more"
        unknown = gone if runs else f"{gone}, and its event log does not say how it ended"
        return JobReport(
            **common,
            name=staged.job.name if staged is not None else "",
            state=view.state if view.state.ended else State.RUNNING if runs else State.FAILED,
            user=staged.user if staged is not None else view.user,
            submitted=submitted,
            started=view.running,
            finished=0.0 if runs else view.finished or changed or submitted,
            progress=view.progress,
            diagnostics=view.outcome.diagnostics if view.outcome is not None else unknown,
            master=self._master_address(common["directory"], pod) if runs else "",
        )

    def reach(self, report: JobReport) -> JobReport:
        if not report.master:
            return report
        return dataclasses.replace(report, master=self.reach_url(report.id, report.master))

    def reach_url(self, job_id: str, url: str) -> str:
        """Return a URL that leads from this machine to the server of a process of the job at `url`: `url` itself, if
        the pods' network can be reached, else one with a port of this machine that the API server forwards."""
        from howdah.engines.kubernetes.port_forward import PodForward, reaches  # while the master starts

        if not self._forwards and reaches(url):  # a process that needs a tunnel to one pod needs tunnels to all
            return url
        address = urllib.parse.urlsplit(url)
        found = self._list("pods", **{manifests.JOB: job_id})
        pod = next((name_of(each) for each in found if each["status"].get("podIP") == address.hostname), None)
        if pod is None:
            return url
        if (pod, address.port) not in self._forwards:
            forward = PodForward(self._api, pod, url)
            for other in [each for each in self._forwards if each[0] == pod]:  # what was started there again
                self._forwards.pop(other).close()
            self._forwards[pod, address.port] = forward
        return urllib.parse.urlunsplit(address._replace(netloc=self._forwards[pod, address.port].address))

    def cancel(self, job_id: str) -> None:
        """Let the cluster end the Job. The Job stays, with its end, so that every machine sees how the job ended."""
        if not job_id.startswith(PREFIX) or (job := self._api.find(self._api.path("jobs", job_id))) is None:
            return
        if job_condition(job, "Complete", "Failed") is None:
            about = {"annotations": {manifests.CANCELLED: getpass.getuser()}}
            change = {"metadata": about, "spec": {"suspend": False, "activeDeadlineSeconds": 1}}
            self._api.call("PATCH", self._api.path("jobs", job_id), change, MERGE)
        for pod in self._list("pods", **{manifests.JOB: job_id}):
            is_master = pod["metadata"]["labels"].get(manifests.ROLE) == manifests.MASTER
            if not is_master and not container_state(pod, "terminated"):
                self._api.delete("pods", name_of(pod))  # with the time that its program has to stop

    def stop_limit_s(self, job_id: str) -> float:
        job = self._api.find(self._api.path("jobs", job_id)) or {}
        master = job.get("spec", {}).get("template", {}).get("spec", {})
        return float(master.get("terminationGracePeriodSeconds") or 0)

    def pending_reasons(self, job_id: str, job: JobSpec | None, missing: Mapping[str, int]) -> list[PendingReason]:
        found: dict[tuple[str, str], None] = {}
        pods = self._list("pods", **{manifests.JOB: job_id})
        for pod in pods:
            role = str(pod["metadata"]["labels"].get(manifests.ROLE, ""))
            _, text = waits_for(pod)
            if text and not container_state(pod, "terminated"):
                found.setdefault(("master" if role == manifests.MASTER else role, text))
        for role in missing.keys() - {role for role, _ in found}:
            found.setdefault((role, self._refusal(job_id, role)))
        if not pods:
            found.setdefault(("master", self._last_warning(job_id)))
        return [PendingReason("said", {"text": f"{role}: {text}"}) for role, text in found if text]

    def _refusal(self, job_id: str, role: str) -> str:
        """Return why the cluster would refuse a pod of this role now, for example because a quota is used up; "" if it
        would not."""
        found = JobFiles(self._directory(job_id), self._conf_dir).submitted()
        staged = found[0] if found is not None else None
        if staged is not None and role in staged.job.roles:
            options = engine_options(staged.job, self._settings, manifests.ENGINE)
            pod = manifests.task_pod(_PLANNED, staged, options, role, _PLANNED, NO_PREFERENCES, _PLANNED, {})
            try:
                self._api.create("pods", pod, dry_run=True)
            except ApiRefused as error:
                return str(error)
        return ""

    def _last_warning(self, job_id: str) -> str:
        """Return the last warning of the cluster about a Job, for example that its pod was refused; "" if there is
        none."""
        path = self._api.path("events", fieldSelector=f"involvedObject.name={job_id},type=Warning")
        warnings = sorted(self._api.get(path)["items"], key=lambda event: str(event.get("lastTimestamp") or ""))
        return str(warnings[-1].get("message") or "") if warnings else ""

    def logs(self, job_id: str, task: TaskId | None, stream: str = "") -> Iterator[tuple[str, bytes]]:
        if not self.describe(job_id):
            raise JobNotFound(f"neither the namespace {self._api.namespace} nor {self.home} knows {job_id}")
        yield from JobFiles(self._directory(job_id), self._conf_dir).read_logs(task, stream)
        if task is None and not stream:
            pod = self._master_pods(**{manifests.JOB: job_id}).get(job_id)
            if pod is not None:
                with contextlib.suppress(HowdahError):  # the node may be gone, and its logs with it
                    yield "master", self._api.read("GET", self._api.path("pods", name_of(pod), "log"))


def _refuse_foreign_keys(job: JobSpec) -> None:
    """Refuse options that only YARN supports.

    Raises:
        SpecError: the job asks for it.
    """
    for name, role in job.roles.items():
        if role.placement.constraint:
            problem = "is YARN's language; on Kubernetes there is placement.spread, and kubernetes.node_selector"
            raise SpecError.at(f"roles.{name}.placement.constraint", problem)
    if job.priority is not None:
        problem = "is a number; Kubernetes has classes: engines.kubernetes.priority_class"
        raise SpecError.at("priority", problem)


def _refuse_unmounted_paths(staged: StagedJob, options: Mapping[str, Any]) -> None:
    """Refuse data on this machine that no pod sees: inputs would be missing there, and outputs and checkpoints would be
    lost with the pod. The master itself moves outputs to their places and looks for checkpoints, so these must not be
    in a volume of the job's own, which its pod does not mount.

    Raises:
        SpecError: an input, output or directory is in no volume, or pods may not write what they have to.
    """
    job = staged.job
    volumes = [each for role in job.roles for each in manifests.job_volumes(job, options, role)]
    for number, entry in enumerate(staged.inputs):
        for file in entry.files:
            if file.uri not in entry.uploads:
                _refuse_unmounted_path(f"inputs.{number}.path", file.uri, volumes)
    masters = manifests.job_volumes(job, options)
    for number, output in enumerate(job.outputs):
        _refuse_unwritable_path(f"outputs.{number}.path", output.path, masters)
        _refuse_unwritable_path(f"outputs.{number}.save.to", output.save.to, masters)
    _refuse_unwritable_path("checkpoint.path", job.checkpoint.path, masters)
    _refuse_unmounted_path("board.path", job.board.path, volumes)


def _refuse_unmounted_path(place: str, uri: str, volumes: Sequence[manifests.Volume]) -> None:
    if uri.startswith("file:") and not any(volume.sees(Path(uris.path(uri))) for volume in volumes):
        problem = f"is {uris.path(uri)}, which pods do not mount: name its volume in kubernetes.volumes"
        raise SpecError.at(place, problem)


def _refuse_unwritable_path(place: str, uri: str, volumes: Sequence[manifests.Volume]) -> None:
    """Refuse a path that is in none of these volumes, or in one that pods may only read."""
    _refuse_unmounted_path(place, uri, volumes)
    path = Path(uris.path(uri)) if uri.startswith("file:") else Path()
    around = [volume for volume in volumes if path.is_relative_to(volume.inside)]
    if around and max(around, key=lambda volume: len(volume.inside)).read_only:
        problem = f"is {path}, which pods may only read: its volume in kubernetes.volumes must not end in :ro"
        raise SpecError.at(place, problem)
