"""Writes two scripts: that of the batch step, which starts the master, starts the next one when a master was killed,
passes on Slurm's announcement of the end, and ends with the job's result; and that of the step that guards the batch
step."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

from howdah.spec import uris

KEPT = ("HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "PATH", "LD_LIBRARY_PATH", "MODULEPATH")
"""The submitter's variables that programs get, too. All others must be declared in the job file, because a variable
that was set by chance would be missing on another engine."""
APPEAR_LIMIT_S = 120
WARNED_S = 60
"""Seconds before the time limit at which Slurm announces the end."""
OUTPUT = "output"
"""The directory in the home for the output of batch steps: it must exist before a job has a number."""
REQUEUE = "requeue"
"""The file of a job's directory by which its master asks to be put back into the queue."""

GUARD = """while sleep 10; do
    nodes=$(squeue --noheader --jobs={number} --format=%N) && [ "$nodes" ] || continue
    nodes=$(scontrol show hostnames "$nodes") && [ "$nodes" ] || continue
    case " $(echo $nodes) " in *" {host} "*) ;; *) touch {mark}; scontrol requeue {number} ;; esac
done"""
"""The script of a step on another node. With --no-kill Slurm lets a job that has lost its batch host run on without a
batch step, for ever. This step puts such a job back into the queue, and the next attempt of the master goes on."""
_SCRIPT = """#!/bin/bash
{variables}
export HOWDAH_SLURM_DIRECTORY={jobs}/slurm-$SLURM_JOB_ID
pid= asked= number=0 tries=0 asks=0 requeues=0
until [ -e "$HOWDAH_SLURM_DIRECTORY/{mark}" ] && cd "$HOWDAH_SLURM_DIRECTORY"; do  # not an older job's of this number
    [ $((tries += 1)) -le {tries} ] || exit 1
    sleep 0.1
done
exec >>master.log 2>&1
export HOWDAH_CREDENTIALS=$HOWDAH_SLURM_DIRECTORY/credentials
until facts=$(scontrol show node --oneliner "$SLURMD_NODENAME") || [ $((asks += 1)) -ge 60 ]; do
    sleep 10  # is the controller away? Without an address no step on another node would find the master
done
HOWDAH_HOST=$(echo "$facts" | sed -n 's/.* NodeAddr=\\([^ ]*\\).*/\\1/p')
export HOWDAH_HOST=${{HOWDAH_HOST:-$SLURMD_NODENAME}}
trap 'asked=1' TERM INT  # Slurm sends it to the master, too
trap '[ "$pid" ] && kill -USR1 $pid' USR1
while number=$((number + 1)); do
    export HOWDAH_MASTER_ATTEMPT=$((${{SLURM_RESTART_COUNT:-0}} * 100 + number))
    {command} --id slurm-$SLURM_JOB_ID --directory {directory} --job job.json & pid=$!
    wait $pid; status=$?
    while kill -0 $pid 2>/dev/null; do wait $pid; status=$?; done
    [ $status -gt 128 ] && [ -z "$asked" ] && [ ! -e {requeue} ] && [ $number -lt {attempts} ] || break
done
if [ -e {requeue} ] && rm {requeue}; then
    until scontrol requeue $SLURM_JOB_ID || [ $((requeues += 1)) -ge 60 ]; do sleep 10; done  # is the controller away?
    sleep 60
fi
case $(cat outcome 2>/dev/null) in
    SUCCEEDED) rm -f {output}; exit 0 ;;
    CANCELLED) rm -f {output}; scancel $SLURM_JOB_ID; sleep 30 ;;
    FAILED) rm -f {output} ;;
esac
exit 1
"""


def batch_script(home: Path, mark: str, command: list[str], variables: Mapping[str, str], attempts: int) -> str:
    """Return the script. `command` starts the master; `mark` is a file in this job's directory."""
    lines = (f"export {name}={shlex.quote(value)}" for name, value in variables.items())
    return _SCRIPT.format(
        variables="\n".join(lines),
        jobs=shlex.quote(str(home / "jobs")),
        directory=f"{shlex.quote(uris.of_local(home / 'jobs'))}/slurm-$SLURM_JOB_ID",
        mark=mark,
        tries=APPEAR_LIMIT_S * 10,
        command=" ".join(map(shlex.quote, command)),
        attempts=attempts,
        requeue=REQUEUE,
        output=f"{shlex.quote(str(home / OUTPUT))}/$SLURM_JOB_ID",
    )
