"""Generate what is made from the sources and not committed: the compiled catalogue of translations, and the page's part
of it. `generate.py` writes what is older than its sources.

The package's build runs it (hatch_build.py), and so do the page's build, tools/check and the tests.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from howdah.locale.catalogue import FILE as COMPILED
from howdah.locale.catalogue import STORED
from howdah.locale.stored_sentences import PLACEHOLDERS

ROOT = Path(__file__).resolve().parents[1]
CATALOGUE = COMPILED.with_suffix(".po")
PAGE_CATALOGUE = ROOT / "frontend" / "generated" / "zh.json"
PAGE = "page"
"""The page's context in the catalogue."""


def generate() -> None:
    """Compile the catalogue, unless the results are newer than it and this file."""
    rules = Path(sys.modules["howdah.locale.stored_sentences"].__file__ or "")
    newest = max(path.stat().st_mtime for path in (CATALOGUE, rules, Path(__file__)))
    if all(path.exists() and path.stat().st_mtime >= newest for path in (COMPILED, PAGE_CATALOGUE)):
        return
    try:
        from babel.messages import mofile, pofile
    except ImportError:
        sys.exit("howdah: requirements have changed, Babel is not installed: run `make .venv/.test`")
    import io

    with CATALOGUE.open("rb") as file:
        catalogue = pofile.read_po(file, locale="zh", abort_invalid=True)
    compiled = io.BytesIO()
    mofile.write_mo(compiled, catalogue)
    _write(COMPILED, compiled.getvalue())
    texts = {
        context: {entry.id: entry.string for entry in catalogue if entry.context == context}
        for context in (PAGE, STORED)
    }
    page = {"texts": texts[PAGE], "templates": texts[STORED], "placeholders": PLACEHOLDERS[STORED]}
    _write(PAGE_CATALOGUE, json.dumps(page, indent=1, ensure_ascii=False, sort_keys=True).encode() + b"\n")


def _write(path: Path, content: bytes) -> None:
    """Replace a file at once, for tests may run beside this."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    fresh.write_bytes(content)
    fresh.replace(path)


if __name__ == "__main__":
    generate()
