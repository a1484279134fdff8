"""Convert a chart to PNG with the first installed library: resvg (`resvg-py`), or CairoSVG, which needs Cairo."""

from __future__ import annotations

import importlib

from howdah.eventfiles.errors import NoLibrary


def png(document: str) -> bytes:
    """Return the SVG document as a PNG image.

    Raises:
        NoLibrary: no library that draws SVG is installed.
    """
    for draw in (_draw_with_resvg, _draw_with_cairo):
        try:
            return draw(document)
        except (ImportError, OSError):  # CairoSVG without libcairo
            continue
    raise NoLibrary("no PNG here: install howdah[ui] (resvg-py) where this runs, or ask for .svg")


def _draw_with_resvg(document: str) -> bytes:
    module = importlib.import_module("resvg_py")
    return bytes(module.svg_to_bytes(svg_string=document))


def _draw_with_cairo(document: str) -> bytes:
    return bytes(importlib.import_module("cairosvg").svg2png(bytestring=document.encode()))
