"""Makes the command of TonY's tasks, and the variables that TonY gave them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace

from howdah.compat.tony import roles
from howdah.compat.tony.conf import Conf
from howdah.compat.tony.files import VENV
from howdah.compat.tony.options import TonyOptions
from howdah.errors import Mistake
from howdah.spec.job import Resources, Role

_TENSORBOARD = 'tensorboard.main --logdir "$TB_LOG_DIR" --port "$TB_PORT" --bind_all'
_RENDEZVOUS_MIB = 512
_HOME = 'export HOME="$PWD"\n'


def line(options: TonyOptions, conf: Conf) -> str:
    """Return `<python> <executes> <task_params>`; a relative interpreter is in the virtual environment, if any."""
    line = _without_quotes(options.first("executes"))
    if not line:
        if options.first("task_params"):
            options.mistakes.append(Mistake("--task_params", "is given without --executes, which it belongs to"))
        return conf.get("tony.containers.command")
    python = options.first("python_binary_path")
    if python and not python.startswith("/") and options.first("python_venv"):
        python = f"{VENV}/{python}"
    return " ".join(filter(None, (python, line, _without_quotes(options.first("task_params")))))


def _without_quotes(text: str) -> str:
    """Remove the quotes around the whole text. Scripts for TonY's first versions wrote them for another shell in
    between."""
    text = text.strip()
    quoted = len(text) > 1 and text[0] == text[-1] == "'" and "'" not in text[1:-1]
    return text[1:-1] if quoted else text


def with_rendezvous(conf: Conf, options: TonyOptions, job_roles: Mapping[str, Role]) -> dict[str, Role]:
    """Add Horovod's driver, as TonY did: it starts with the workers, and the job does not wait for its end. In debug
    mode the user's own driver takes its place, at a port that the workers know."""
    from howdah.compat.tony.horovod import RELAY, RENDEZVOUS  # few jobs need it

    workers = {name: role for name, role in job_roles.items() if name != "driver"}
    after = next(iter(workers.values()), Role()).after
    if conf.flag(roles.OWN_DRIVER):
        _check_driver(conf, job_roles["driver"])
        driver, after = job_roles["driver"], job_roles["driver"].after
        line = f"{shlex.quote(RELAY)} {shlex.quote(str(driver.command))}"
    else:
        if "driver" in job_roles:
            conf.wrong("tony.driver.instances", "is set, but the driver of Horovod is howdah's own: leave it out")
        driver, line = Role(resources=Resources(_RENDEZVOUS_MIB)), shlex.quote(RENDEZVOUS)
    line = f"exec {_python(options)} -c {line}"
    return {**workers, "driver": replace(driver, command=line, tracked=False, on_failure="fail", after=after)}


def _check_driver(conf: Conf, driver: Role) -> None:
    if not conf.get("tony.driver.command"):
        conf.wrong("tony.driver.command", f"is missing: {roles.OWN_DRIVER} wants a driver of your own")
    if driver.replicas != 1:
        conf.wrong("tony.driver.instances", f"is {driver.replicas}, must be 1")


def with_tensorboard(options: TonyOptions, conf: Conf, job_roles: dict[str, Role]) -> dict[str, Role]:
    """Add the sidecar for TensorBoard, which alone gets TB_PORT; without a sidecar the chief gets it."""
    if _log_directory(options, conf):
        python = _python(options)
        board = roles.role(conf, "tensorboard", f"{python} -m {_TENSORBOARD}")
        board = replace(board, tracked=False, on_failure="ignore", after=())
        job_roles = {**job_roles, "tensorboard": board}
    serving = next((name for name in ("tensorboard", "chief", "worker") if name in job_roles), "")
    return {
        name: replace(role, ports=("tensorboard",)) if name == serving else role for name, role in job_roles.items()
    }


def _log_directory(options: TonyOptions, conf: Conf) -> str:
    """Return the directory that the sidecar shows; "" if there is no sidecar."""
    return options.first("sidecar_tensorboard_log_dir") or conf.get("tony.application.tensorboard-log-dir")


def links(job_roles: Mapping[str, Role]) -> dict[str, str]:
    """Return TensorBoard's link, which was TonY's tracking URL: that of the sidecar, or of a chief that serves at
    TB_PORT."""
    serving = next((name for name, role in job_roles.items() if "tensorboard" in role.ports), "")
    return {"TensorBoard": f"http://{{{serving}:0}}:{{{serving}:0:tensorboard}}"} if serving else {}


def _python(options: TonyOptions) -> str:
    python = options.first("python_binary_path") or "python3"
    inside = options.first("python_venv") and "/" in python and not python.startswith("/")
    return shlex.quote(f"{VENV}/{python}" if inside else python)


def check(conf: Conf, job_roles: Mapping[str, Role]) -> None:
    """Add a mistake if a role has no command."""
    without = [name for name, role in job_roles.items() if not str(role.command).strip()]
    if without:
        alone = len(job_roles) == 1 and without[0] in roles.SINGLE
        keys_of = "tony.containers.command" if alone else ", ".join(f"tony.{name}.command" for name in without)
        conf.mistakes.append(
            Mistake("--executes", f"is missing: {', '.join(without)} has nothing to run (or set {keys_of})")
        )


def variables(options: TonyOptions, conf: Conf, job_roles: Mapping[str, Role]) -> dict[str, str]:
    """Return TonY's variables, those of the container and those of the program; a later one overrides an earlier
    one."""
    tracked = sum(role.replicas for name, role in job_roles.items() if role.tracked and name != roles.PREPROCESS)
    values = {"TASK_NUM": str(tracked), "DISTRIBUTED_MODE": conf.get("tony.application.distributed-mode").upper()}
    for key in ("hdfs", "yarn", "mapred"):
        if conf.get(f"tony.application.{key}-conf-path"):
            values[f"{key.upper()}_CONF_PATH"] = f"{key}-site.xml"
    values |= {**conf.pairs("tony.containers.envs"), **options.pairs("container_env")}
    values |= {**conf.pairs("tony.execution.envs"), **options.pairs("shell_env")}
    logs = _log_directory(options, conf)
    return {**values, "TB_LOG_DIR": logs} if logs else values  # trainers read their log directory there


def with_home(name: str, role: Role) -> Role:
    """Set HOME for a program that ran in TonY's master, which had a home directory of its own."""
    if (name in roles.SINGLE and role.tracked) or name == roles.PREPROCESS:
        return replace(role, command=f"{_HOME}{role.command}")
    return role
