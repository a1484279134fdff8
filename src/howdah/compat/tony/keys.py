"""Lists TonY's keys, of 0.4 and 0.5: those that are read, those without an effect here, and those that are refused.

A key that is in none of the tables is unknown; one note names all unknown keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from howdah.compat.tony.conf import Conf
from howdah.spec.validation import nearest

APPLICATION = (
    *("name", "type", "tags", "node-label", "framework", "distributed-mode", "enable-preprocess", "timeout"),
    *("untracked.jobtypes", "sidecar.jobtypes", "stop-on-failure-jobtypes", "fail-on-worker-failure-enabled"),
    *("prepare-stage", "training-stage", "tensorboard-log-dir", "placement-spec", "single-node"),
    *("hdfs-conf-path", "yarn-conf-path", "mapred-conf-path"),
    *("docker.enabled", "docker.image"),  # until 0.3
)
READ = (
    *(f"tony.application.{name}" for name in APPLICATION),
    *("tony.yarn.queue", "tony.execution.envs", "tony.docker.enabled"),
    *(f"tony.containers.{name}" for name in ("command", "resources", "envs", "placement-spec", "allocation-tags")),
    *("tony.docker.containers.image", "tony.docker.containers.mount"),
    *(f"tony.am.{name}" for name in ("memory", "vcores", "gpus", "node-label", "retry-count", "startup-timeout")),
    *("tony.container.allocation.timeout", "tony.container.registration.timeout", "tony.worker.timeout"),
    *("tony.task.executor.execution-timeout-ms", "tony.task.executor.registry-timeout-sec"),
    *("tony.task.max-total-instances", "tony.task.max-total-memory", "tony.task.max-total-gpus"),
    *("tony.task.max-total-vcores", "tony.horovod.driver.mode.debug"),
)
ROLE = (
    *("instances", "max-instances", "memory", "vcores", "gpus", "command", "resources", "node-label"),
    *("placement-spec", "allocation-tags"),
)
# Keys for TonY's own processes, which do not exist here.
NOTHING = re.compile(
    r"tony\.(task\.(am|executor|default)\.jvm\.opts|task\.(heartbeat-interval(-ms)?|max-missed-heartbeats)"
    r"|task\.(metrics-interval-ms|gpu-metrics\.enabled)|task\.executor\.execution\.error-message-max-depth"
    r"|gpu-exec-path|am\.wait-client-signal-stop-timeout-sec"
    r"|application\.(num-client-rm-connect-retries|security\.enabled|hadoop\.(location|classpath))"
    r"|(history|https|http|portal|keytab|version-info|init)\..*|secret\.key)"
)
_PER_ROLE = re.compile(rf"tony\.([a-z]+)\.({'|'.join(ROLE)})")
_MISNAMED = re.compile(r"tony\.(?![a-z]+\.)[^.]+\.instances")
_GROUPS = re.compile(r"tony\.(docker\.[a-z]+\.image|task\.max-total-[a-z]+|application\.group\.\w+)")
DEPENDENCY = re.compile(r"tony\.application\.dependency\.([a-z]+)\.timeout\.after\.(\w+)(\.ignored)?")
# Refused keys, each with the value that asks for nothing, and the reason.
REFUSED = {
    "tony.horovod.mode.test": ("false", "it was for TonY's own tests"),
    "tony.horovod.mode.test.fast.fail": ("false", "it was for TonY's own tests"),
    "tony.other.namenodes": ("", "only the cluster's own file systems are logged in to"),
}
_PAGE = "docs/coming-from-tony.md#keys"


def check_keys(conf: Conf) -> Iterator[str]:
    """Add a mistake for each key that asks for something impossible; yield notes on such keys of the administrator's,
    and on unknown keys."""
    unknown = []
    for key in conf.explicit_keys():
        problem = _problem(conf, key)
        if problem and conf.of_site(key):
            yield f"{key} ({conf.origins[key]}) {problem}"
        elif problem:
            conf.wrong(key, problem)
        elif key.startswith("tony.") and not _is_known_key(key):
            near = nearest(key, (*READ, *(f"tony.worker.{name}" for name in ROLE)))
            unknown.append(f"{key} ({conf.origins[key]}{f'; did you mean {near}?' if near else ''})")
    if unknown:
        yield f"keys that TonY doesn't know have no effect: {', '.join(unknown)}"


def _problem(conf: Conf, key: str) -> str:
    """Return why the key's value is impossible; "" if it is not."""
    if key in REFUSED and conf.get(key) not in ("", REFUSED[key][0]):
        return f"is {conf.get(key)!r}, which isn't supported: {REFUSED[key][1]} ({_PAGE})"
    if key.endswith(".depends-on"):
        return f"has had no effect since TonY 0.3; write tony.application.prepare-stage ({_PAGE})"
    if _MISNAMED.fullmatch(key) and conf.get(key) not in ("", "0"):
        return f"names no job type, whose names have small letters only ({_PAGE})"
    return ""


def _is_known_key(key: str) -> bool:
    return (
        key in READ
        or key in REFUSED
        or any(pattern.fullmatch(key) for pattern in (_PER_ROLE, _GROUPS, DEPENDENCY, NOTHING))
    )
