"""Runs on the node, with the Python of the job: starts IPython's kernel with this task's ports and the kernel's key."""

import json
import os
from pathlib import Path

PORTS = ("shell", "iopub", "stdin", "control", "hb")
CONNECTION_FILE = "kernel.json"


def main() -> None:
    """Write the connection file, which only the user may read, and become the kernel."""
    connection = {f"{name}_port": int(os.environ[f"HOWDAH_PORT_{name.upper()}"]) for name in PORTS}
    key = {"key": os.environ.pop("HOWDAH_KERNEL_KEY"), "signature_scheme": "hmac-sha256"}
    # Every client must sign with the key, wherever it connects from.
    content = {**connection, **key, "ip": "0.0.0.0", "transport": "tcp"}  # noqa: S104
    Path(CONNECTION_FILE).touch(0o600)
    Path(CONNECTION_FILE).write_text(json.dumps(content), encoding="utf-8")
    try:
        from ipykernel.kernelapp import launch_new_instance
    except ImportError as error:
        raise SystemExit(f"{error}: the Python of the job needs ipykernel (--requirements)") from None
    launch_new_instance(["-f", CONNECTION_FILE])


if __name__ == "__main__":
    main()
