"""Tests that programs of an unknown framework find each other by the variables that every task gets.

What Caffe's, Theano's or anybody's own launcher scripts need: who am I, who are the others, on which port do I listen.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

HOWDAH = str(Path(sys.executable).with_name("howdah"))
PROGRAM = """\
import json, os, socket, time

world = json.loads(os.environ["HOWDAH_WORLD"])
role, index = os.environ["HOWDAH_ROLE"], int(os.environ["HOWDAH_INDEX"])
me = world["roles"][role][index]
assert me["ports"]["main"] == int(os.environ["HOWDAH_PORT"])
assert me["ports"]["status"] == int(os.environ["HOWDAH_PORT_STATUS"]) if role == "keeper" else True
assert len(world["roles"][role]) == int(os.environ["HOWDAH_REPLICAS"])
assert sum(map(len, world["roles"].values())) == int(os.environ["HOWDAH_WORLD_SIZE"])
assert world["epoch"] == int(os.environ["HOWDAH_EPOCH"])
assert os.environ["HOWDAH_TASK"] == f"{role}:{index}"
if role == "keeper":
    total = 0
    with socket.create_server((me["host"], me["ports"]["main"])) as listening:
        for _ in world["roles"]["learner"]:
            with listening.accept()[0] as learner:
                total += int(learner.makefile().readline())
    print("the ranks add up to", total, flush=True)
else:
    keeper = world["roles"]["keeper"][0]
    for _ in range(300):
        try:
            with socket.create_connection((keeper["host"], keeper["ports"]["main"])) as connection:
                connection.sendall(os.environ["HOWDAH_RANK"].encode() + b"\\n")
            break
        except ConnectionRefusedError:
            time.sleep(0.1)
    else:
        raise SystemExit("nobody keeps")
"""
JOB = """\
name: unheard-of
roles:
  keeper: { command: python3 program.py, ports: [status], resources: { memory: 64MiB } }
  learner: { command: python3 program.py, replicas: 3, resources: { memory: 64MiB } }
files: [program.py]
"""


def test_programs_find_each_other_by_the_world_alone(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "job.yaml").write_text(JOB)
    command = [HOWDAH, "run", "--on", "local", "--json", str(tmp_path / "job.yaml")]
    env = {**os.environ, "HOWDAH_HOME": str(tmp_path / "home")}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the ranks add up to 6" in done.stdout  # keeper has rank 0; learners 1, 2 and 3
    assert json.loads(done.stdout.splitlines()[0])
