"""Generates what is made from the sources. Nothing of it is committed but the documentation's copies of the documents.

- `generate.py` compiles the catalogue of translations (`howdah.mo`), and writes into frontend/generated the page's part
  of the catalogue, the defaults of a job's keys, the OpenAPI document and the job file's JSON Schema. The builds of the
  page and the package run it.
- `generate.py catalogue` does that with the catalogue alone; every run of the tests begins with it.
- `generate.py documents DIRECTORY` writes the two documents into DIRECTORY.
- `generate.py check` fails where their copies in docs differ; tools/check runs it.
"""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from howdah.locale.catalogue import FILE as COMPILED
from howdah.locale.catalogue import PAGE

ROOT = Path(__file__).resolve().parents[1]
DOCS, GENERATED = ROOT / "docs", ROOT / "frontend" / "generated"
CATALOGUE, PAGE_CATALOGUE = COMPILED.with_suffix(".po"), GENERATED / "zh.json"


def generate_catalogue() -> None:
    """Compile the catalogue, unless the results are newer than it and this file."""
    newest = max(path.stat().st_mtime for path in (CATALOGUE, Path(__file__)))
    if all(path.exists() and path.stat().st_mtime >= newest for path in (COMPILED, PAGE_CATALOGUE)):
        return
    try:
        from babel.messages import mofile, pofile
    except ImportError:
        sys.exit("howdah: Babel is not installed, requirements have changed: run `make .venv/.test`")
    with CATALOGUE.open("rb") as file:
        catalogue = pofile.read_po(file, locale="zh", abort_invalid=True)
    compiled = io.BytesIO()
    mofile.write_mo(compiled, catalogue)
    _write(COMPILED, compiled.getvalue())
    texts = {entry.id: entry.string for entry in catalogue if entry.context == PAGE}
    _write(PAGE_CATALOGUE, json.dumps(texts, indent=1, ensure_ascii=False, sort_keys=True).encode() + b"\n")


def documents() -> dict[str, bytes]:
    """Return the two documents by their file names, as they are made from the code."""
    from howdah.api.openapi import openapi
    from howdah.config.job_schema import schema

    return {
        "job.schema.json": json.dumps(schema(), indent=2).encode() + b"\n",
        "openapi.json": json.dumps(openapi(), indent=1, ensure_ascii=False).encode() + b"\n",
    }


def defaults() -> dict[str, bytes]:
    """Return the file of the defaults of the keys of a job, its roles, inputs and outputs, which the page shows."""
    from howdah.spec import job
    from howdah.spec.job_file_keys import default_values

    kinds = {"job": job.JobSpec, "role": job.Role, "input": job.Input, "output": job.Output}
    found = {name: default_values(kind) for name, kind in kinds.items()}
    return {"defaults.json": json.dumps(found, indent=1).encode() + b"\n"}


def write_files(directory: Path, files: dict[str, bytes]) -> None:
    """Write the files, unless they are there already."""
    for name, content in files.items():
        if not (directory / name).exists() or (directory / name).read_bytes() != content:
            _write(directory / name, content)


def check_documents() -> None:
    """Exit with a message if a copy in docs differs from what the code says."""
    outdated = [name for name, content in documents().items() if (DOCS / name).read_bytes() != content]
    if outdated:
        sys.exit(f"howdah: docs/{' and docs/'.join(outdated)} out of date: run `tools/generate.py documents docs`")


def _write(path: Path, content: bytes) -> None:
    """Replace a file at once, for tests may run beside this."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    fresh.write_bytes(content)
    fresh.replace(path)


if __name__ == "__main__":
    match sys.argv[1:]:
        case []:
            generate_catalogue()
            write_files(GENERATED, {**documents(), **defaults()})
        case ["catalogue"]:
            generate_catalogue()
        case ["documents", directory]:
            write_files(Path(directory), documents())
        case ["check"]:
            check_documents()
        case _:
            sys.exit(__doc__)
