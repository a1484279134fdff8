"""Makes the directory that lets a program call the master (`howdah.program`): its key, the address and the package.

Only the package is put on PYTHONPATH, at the end. So the program imports none of the executor's libraries, and an
installed howdah is found before this one.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import time
from typing import Dict, Mapping, Optional, Tuple

from howdah.executor.identity import Identity
from howdah.wire import program_protocol as wire

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_LINKED = ("here.py", "program", "spark", "wire")
_INIT = '''"""The part of howdah that its programs may use; one that is installed goes before it."""

import os
import sys

_ours = os.path.dirname(os.path.abspath(__file__))
_all = (os.path.join(os.path.abspath(entry), "howdah") for entry in sys.path)
__path__ = [one for one in _all if one != _ours and os.path.isfile(os.path.join(one, "__init__.py"))] + [_ours]
'''


class ProgramApiDir:
    """The directory beside the program's working directory, or in it where the container has no other directory."""

    def __init__(self, identity: Identity, directory: str) -> None:
        self.identity = identity
        self.path = os.path.join(identity.container_directory(directory), wire.DIRECTORY)
        self._master = identity.master

    def variables(self, environment: Mapping[str, str], epoch: int) -> Dict[str, str]:
        """Make the files for a program that is about to start in `epoch`, and add their variables to `environment`.

        Raises:
            OSError: a file can't be written.
        """
        modules = self._make_package()
        name = wire.program_principal(self.identity.task, self.identity.attempt, epoch)
        self._write(wire.KEY_FILE, wire.program_key(self.identity.key, name).hex())
        self._write(wire.MASTER_FILE, f"http://{self._master[0]}:{self._master[1]}")
        for name in (wire.PROGRESS_FILE, wire.BEAT_FILE):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(self.path, name))
        path = os.pathsep.join(filter(None, [environment.get("PYTHONPATH"), modules]))
        return {**environment, wire.VARIABLE: self.path, "PYTHONPATH": path}

    def set_master(self, master: Tuple[str, int]) -> None:
        """Write the address of the master that has taken over."""
        self._master = master
        try:
            if os.path.isdir(self.path):
                self._write(wire.MASTER_FILE, f"http://{master[0]}:{master[1]}")
        except OSError as error:
            sys.stderr.write(f"the program can't be told where the master is now: {error}\n")

    def write_progress(self, fraction: float) -> None:
        """Write the progress that the program has reported to the executor, as `howdah.program.progress` does.

        Raises:
            OSError: the file can't be written.
        """
        self._write(wire.PROGRESS_FILE, f"{fraction:.6f}\n")

    def write_token(self, token: str) -> str:
        """Write the token of the program's reports to the executor, and return the file's path.

        Raises:
            OSError: the file can't be written.
        """
        self._write(wire.TOKEN_FILE, token)
        return os.path.join(self.path, wire.TOKEN_FILE)

    @property
    def progress(self) -> Optional[float]:
        """Return the progress that the program has written; None without any."""
        try:
            # The file is the program's: opening it must never block, whatever it is.
            file = os.open(os.path.join(self.path, wire.PROGRESS_FILE), os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        except OSError:
            return None
        try:
            return min(1.0, max(0.0, float(os.read(file, 32))))
        except (OSError, ValueError):
            return None
        finally:
            os.close(file)

    @property
    def last_sign_at(self) -> float:
        """Return the time of the program's last report, on the file system's clock; 0 when it never reported."""
        found = 0.0
        for name in (wire.PROGRESS_FILE, wire.BEAT_FILE):
            with contextlib.suppress(OSError):
                found = max(found, os.stat(os.path.join(self.path, name)).st_mtime)
        return found

    def write_notice(self, kind: str, within_s: float, text: str) -> None:
        """Make `howdah.program.notice()` return this warning from now on.

        Raises:
            OSError: the file can't be written.
        """
        until = time.time() + within_s if within_s else 0.0
        self._write(wire.NOTICE_FILE, json.dumps({"kind": kind, "until": until, "text": text}))

    def close(self) -> None:
        """Remove the directory, because no program runs any more."""
        shutil.rmtree(self.path, ignore_errors=True)

    def _make_package(self) -> str:
        modules = os.path.join(self.path, "python")
        package = os.path.join(modules, "howdah")
        if not os.path.isdir(package):
            os.makedirs(self.path, mode=0o700, exist_ok=True)
            os.makedirs(package)
            with open(os.path.join(package, "__init__.py"), "w", encoding="ascii") as file:
                file.write(_INIT)
            for name in _LINKED:
                os.symlink(os.path.join(_PACKAGE, name), os.path.join(package, name))
        return modules

    def _write(self, name: str, text: str) -> None:
        """Replace a file in one step, because the program may be reading it."""
        path = os.path.join(self.path, name)
        file = os.open(f"{path}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            os.write(file, text.encode("ascii"))
        finally:
            os.close(file)
        os.replace(f"{path}.new", path)
