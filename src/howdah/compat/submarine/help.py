"""Makes the text of `howdah submarine --help`: its actions, and each option of `job run` with its meaning."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from howdah.cli.i18n import _
from howdah.compat.submarine.options import FLAGS, OPTIONS

ACTIONS = {
    "job run [OPTIONS]": "Submit a job.",
    "job show --name NAME | ID": "Show what was asked for, and how the job goes.",
    "job list": "List your jobs, the newest first.",
    "job kill --name NAME | ID": "End a job.",
}
_IMAGE = "Container image of these tasks, over --docker_image."
_LAUNCH = "What each of them runs, a line for the shell."
_RESOURCES = "What each of them gets, such as memory=4G,vcores=2,gpu=1."
OPTION_HELP = {
    "name": "Name of the job; must be given.",
    "framework": "tensorflow (the default), pytorch or mxnet.",
    "docker_image": "Container image of all tasks, which YARN's Docker runtime runs.",
    "input_path": "Where the data is: %input_path% in a launch command stands for it.",
    "checkpoint_path": "Where the programs keep checkpoints: %checkpoint_path% stands for it. Made if not given.",
    "saved_model_path": "Where they put the model: %saved_model_path% stands for it; else the checkpoint path.",
    "queue": "Queue of YARN.",
    "keytab": "File to log in with; --principal says as whom.",
    "principal": "Who logs in with --keytab.",
    "f": "YAML file that says the same.",
    "num_workers": "Number of workers, 1 by default; 0 runs TensorBoard alone.",
    "num_ps": "Number of parameter servers, 0 by default; for TensorFlow and MXNet.",
    "num_schedulers": "Number of MXNet's schedulers, 0 or 1.",
    "tensorboard_resources": "What TensorBoard gets where it is a task: memory=4G,vcores=1 by default.",
    "tensorboard_docker_image": "Container image with the TensorBoard to run as a task.",
    "quicklink": "LABEL=http://INSTANCE:PORT, as in Page=http://master-0:8888; printed when the task runs. Repeatable.",
    "env": "NAME=VALUE, a variable of all tasks. Repeatable; values of one name are joined by a colon.",
    "localization": "REMOTE:LOCAL, a file or directory that each task has as . or ./NAME, or mounted. Repeatable.",
    "conf": "tony.KEY=VALUE, for the runtime of TonY. Repeatable.",
    "tensorboard": "Run TensorBoard of the checkpoint path.",
    "distribute_keytab": "Has no effect: the keytab stays here, tasks get tokens.",
    "insecure": "Use the runtime of TonY.",
    "wait_job_finish": "Follow the job, and exit with its result.",
    "verbose": "Print the job as a job file, too.",
    "legacy": "Do as Submarine did where howdah does better (docs/coming-from-submarine.md).",
    **{f"{role}_resources": _RESOURCES for role in ("worker", "ps", "scheduler")},
    **{f"{role}_launch_cmd": _LAUNCH for role in ("worker", "ps", "scheduler")},
    **{f"{role}_docker_image": _IMAGE for role in ("worker", "ps", "scheduler")},
}
_INDENT, _WIDTH = 30, 100


def lines() -> Iterator[str]:
    """Yield all lines of the help."""
    for action, text in ACTIONS.items():
        yield from _entry(f"howdah submarine {action}", _(text))
    yield ""
    for name in OPTIONS:
        dashes = "-" if len(name) == 1 else "--"
        yield from _entry(f"  {dashes}{name}" + ("" if name in FLAGS else " …"), _(OPTION_HELP[name]))


def _entry(words: str, text: str) -> Iterator[str]:
    """Yield the words of an option, with their meaning beside or below them."""
    width = (_WIDTH - _INDENT) // (1 if text.isascii() else 2)  # Chinese takes two places
    wrapped = textwrap.wrap(text, width, break_on_hyphens=False)
    beside = len(words) < _INDENT
    yield f"{words:<{_INDENT}}{wrapped[0]}" if beside else words
    yield from (f"{'':<{_INDENT}}{line}" for line in wrapped[beside:])
