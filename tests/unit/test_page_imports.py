"""Tests that the page's files do not import each other in a cycle."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "frontend" / "src"
# `import x from "./y"`, `export {x} from "./y"`, `import "./y"` and `import("./y")`: an import of a type alone, and one
# that is loaded later, also tie the file that holds them to the other.
IMPORT = re.compile(r"""(?:\bfrom|\bimport)\s*\(?\s*["'](\.[^"']*)["']""")
ENDINGS = ("", ".ts", ".tsx")


def local_imports(path: Path, root: Path) -> list[str]:
    """Return the names of files below `root` that a script imports; types made from the API's document lie outside."""
    names = IMPORT.findall(path.read_text())
    return [name for name in names if (path.parent / name).resolve().is_relative_to(root.resolve())]


def resolve_import(importer: Path, name: str) -> Path:
    """Return the file that `name` stands for in `importer`."""
    path = (importer.parent / name).resolve()
    found = [whole for whole in (path.with_name(path.name + ending) for ending in ENDINGS) if whole.is_file()]
    assert found, f"{importer}: there is no {name}"
    return found[0]


def import_graph(root: Path) -> dict[Path, list[Path]]:
    """Map each script below `root` to the scripts below `root` that it imports."""
    scripts = sorted(root.resolve().rglob("*.ts*"))
    graph = {path: [resolve_import(path, name) for name in local_imports(path, root)] for path in scripts}
    return {path: [other for other in imported if other in graph] for path, imported in graph.items()}


def find_cycle(graph: dict[Path, list[Path]]) -> list[Path]:
    """Return the files of a circle, the first of them also at the end; empty if there is none."""
    done: set[Path] = set()

    def visit(path: Path, above: list[Path]) -> list[Path]:
        if path in above:
            return [*above[above.index(path) :], path]
        if path in done:
            return []
        found = next((circle for other in graph[path] if (circle := visit(other, [*above, path]))), [])
        done.add(path)
        return found

    return next((circle for path in graph if (circle := visit(path, []))), [])


def test_no_files_of_the_page_import_each_other() -> None:
    graph = import_graph(SOURCES)
    assert sum(map(len, graph.values())) > 300, "the imports are found"
    assert [str(path.relative_to(SOURCES.resolve())) for path in find_cycle(graph)] == []


@pytest.mark.parametrize(
    "line", ['import { b } from "./b";', 'import type { B } from "./b";', 'const b = lazy(() => import("./b"));']
)
def test_a_circle_is_found_in_every_kind_of_import(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.ts").write_text(line)
    (tmp_path / "b.tsx").write_text('export { a } from "./a";')
    assert [path.name for path in find_cycle(import_graph(tmp_path))] == ["a.ts", "b.tsx", "a.ts"]
