"""Makes wheels, without tools that would have to be downloaded: `packages.py NAME VERSION DIRECTORY`.

As a build backend it makes the wheel of its own package, with the module that `pyproject.toml` names.
"""

import re
import sys
import zipfile
from pathlib import Path


def write_wheel(directory, name, version, text):
    wheel = f"{name}-{version}-py3-none-any.whl"
    facts = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(Path(directory, wheel), "w") as archive:
        archive.writestr(f"{name}.py", text)
        archive.writestr(f"{facts}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(f"{facts}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{facts}/RECORD", "")
    return wheel


def build_wheel(directory, *_):
    name = re.search('name = "(.*)"', Path("pyproject.toml").read_text())[1]
    return write_wheel(directory, name, "1", Path(f"{name}.py").read_text())


build_editable = build_wheel


if __name__ == "__main__":
    name, version, directory = sys.argv[1:]
    write_wheel(directory, name, version, f"VERSION = {version!r}\n")
