"""Tests the files and variables that an executor prepares for `howdah.program`."""

from __future__ import annotations

from conductor import Conductor
from test_executor import Start, conduct, program

from howdah.wire import auth
from howdah.wire import program_protocol as wire
from howdah.wire.messages import Goal, Phase

__all__ = ["conduct"]
LOOK = """
import os, stat
here = os.environ["HOWDAH_HERE"]
modes = [oct(stat.S_IMODE(os.stat(path).st_mode)) for path in (here, here + "/key", here + "/master")]
names = sorted({*os.listdir(here)} - {"bin"})  # a `python`, where the machine has none
print(*modes, open(here + "/key").read(), open(here + "/master").read(), names, flush=True)
"""


def key(master: Conductor, epoch: int) -> str:
    return wire.program_key(
        auth.derive(master.key, master.principal), wire.program_principal("worker:1", 1, epoch)
    ).hex()


def test_each_epoch_has_a_private_key_and_no_file_is_left(conduct: Start) -> None:
    master = conduct(program(LOOK))
    master.run()
    master.set_orders(Goal.RUN, epoch=2)
    master.until(lambda status: status.epoch == 2 and status.phase is Phase.ENDED)
    first, second = master.output().decode().splitlines()
    url = f"http://127.0.0.1:{master._server.server_port}"
    assert first == f"0o700 0o600 0o600 {key(master, 1)} {url} ['key', 'master', 'python', 'trainer-token']"
    assert second == first.replace(key(master, 1), key(master, 2))
    assert (master.directory / "howdah-here").exists()
    master.leave()
    assert not (master.directory / "howdah-here").exists()


def test_what_it_says_of_its_progress_is_told(conduct: Start) -> None:
    master = conduct(program("from howdah import here; here.progress(0.25); here.progress(0.75); here.progress(1)"))
    where = {"HOWDAH_JOB_ID": "j", "HOWDAH_JOB_NAME": "n", "HOWDAH_TASK": "worker:1", "HOWDAH_ROLE": "worker"}
    numbers = {"HOWDAH_INDEX": "1", "HOWDAH_RANK": "1", "HOWDAH_WORLD_SIZE": "2", "HOWDAH_EPOCH": "1"}
    ended = master.run(**where, **numbers, HOWDAH_ATTEMPT="1")
    assert ended.exit is not None
    assert ended.exit.ok, ended.exit.lines
    assert ended.usage.progress == 1.0
    assert not list(master.work.glob("*here*"))


def test_garbage_in_its_directory_does_no_harm(conduct: Start) -> None:
    spoil = "import os, shutil; h = os.environ['HOWDAH_HERE']; open(h + '/progress', 'wb').write(b'\\xff' * 99)"
    master = conduct(program(f"{spoil}; shutil.rmtree(h + '/python'); os.unlink(h + '/key'); print('done')"))
    assert master.run().usage.progress is None
    master.set_orders(Goal.RUN, epoch=2)
    master.until(lambda status: status.epoch == 2 and status.phase is Phase.ENDED)
    assert master.output() == b"done\ndone\n"
