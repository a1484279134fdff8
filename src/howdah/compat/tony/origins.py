"""The option or key behind each place of the spec, so that errors name the words that were typed."""

from __future__ import annotations

from howdah.compat.tony.conf import Conf
from howdah.compat.tony.files import VENV
from howdah.compat.tony.options import TonyOptions
from howdah.spec import JobSpec

_KEYS = {
    "name": "tony.application.name",
    "queue": "tony.yarn.queue",
    "tags": "tony.application.tags",
    "framework": "tony.application.framework",
    "node_label": "tony.application.node-label",
    "retries": "tony.am.retry-count",
    "environment.image": "tony.docker.containers.image",
    "env": "tony.execution.envs",
}
_ROLE = {"replicas": "instances", "node_label": "node-label", "placement.constraint": "placement-spec"}
_ROLE |= {f"resources.{what}": what for what in ("memory", "vcores", "gpus")}
_FILES = {".": "--src_dir", VENV: "--python_venv"}
_FILES |= {f"{which}-site.xml": f"tony.application.{which}-conf-path" for which in ("hdfs", "yarn", "mapred")}


def origins(job: JobSpec, options: TonyOptions, conf: Conf) -> dict[str, str]:
    """Return the option or key by place of the spec."""

    def written(key: str) -> str:
        return f"{key}, {conf.origins[key]}" if key in conf.origins else key

    found = {place: written(key) for place, key in _KEYS.items()}
    found |= {f"env.{name}": "--shell_env" for name in options.pairs("shell_env")}
    for name in job.roles:
        own = f"tony.{name}.command"
        found[f"roles.{name}.command"] = written(own) if conf.get(own) else "--executes"
        found |= {f"roles.{name}.{place}": written(f"tony.{name}.{key}") for place, key in _ROLE.items()}
        found |= {f"roles.{name}.{kind}": written(f"tony.{name}.resources") for kind in ("files", "archives")}
    for kind, entries in (("files", job.files), ("archives", job.archives)):
        for number, entry in enumerate(entries):
            found[f"{kind}.{number}"] = written(_FILES.get(entry.rpartition("#")[2], "tony.containers.resources"))
    return found
