"""`python -m howdah.executor` runs one attempt of one task, which the environment names (howdah.executor.identity)."""

from __future__ import annotations

import gc
import os
import sys
from importlib.util import find_spec


def main() -> int:
    """Run an executor. Return 0 if it left on the master's order, 75 if the master was not heard, 76 if it is not
    wanted, 143 if a signal ended it, 78 if it is not set up."""
    here = os.getcwd()
    _do_without_openssl()
    gc.disable()  # imports leave no garbage, and looking for it takes a fifteenth of the start
    from howdah.executor.executor import Executor
    from howdah.executor.identity import Identity, share_credentials
    from howdah.executor.own_log import log
    from howdah.executor.reassignment import next_environment
    from howdah.localfiles.deep_directories import allow_deep_directories
    from howdah.wire.launch_messages import executor_command
    from howdah.wire.stderr import ignore_full_disk

    gc.enable()
    ignore_full_disk()
    allow_deep_directories()
    try:
        identity = Identity.from_environment(os.environ)
        share_credentials(False)
        if identity.work_directory:
            os.chdir(identity.work_directory)
        executor = Executor(identity, dict(os.environ))
    except (KeyError, ValueError, OSError) as error:
        log(f"this executor cannot begin: {type(error).__name__}: {error}")
        return 78
    status = executor.run()
    if executor.reassigned_to and status == 0:
        os.chdir(here)
        share_credentials(True)
        os.execve(sys.executable, executor_command(sys.executable), next_environment(executor))  # noqa: S606
    return status


def bootstrap() -> int:
    """Run the bootstrap with the modules of this installation, so that it can become the executor within this process.
    The argument is the word by which this interpreter was called. Return as `howdah.executor.bootstrap.main` does."""
    _do_without_openssl()
    gc.disable()
    from howdah.executor.bootstrap import OwnExecutor
    from howdah.executor.bootstrap import main as run_bootstrap

    return run_bootstrap(OwnExecutor(sys.argv[1], main))


def _do_without_openssl() -> None:
    """Keep hashlib from loading OpenSSL, which takes 4 of 19 MB of resident memory: CPython's own sha256 is enough."""
    if any(name in sys.builtin_module_names or find_spec(name) for name in ("_sha2", "_sha256")):
        sys.modules["_hashlib"] = None  # type: ignore[assignment]


if __name__ == "__main__":
    sys.exit(main())
