"""Converts a chart to PNG with the first installed library: resvg (`resvg-py`), or CairoSVG, which needs Cairo."""

from __future__ import annotations

import importlib

from howdah.eventfiles.errors import NoLibrary


def png(document: str) -> bytes:
    """Return the SVG document as a PNG image.

    Raises:
        NoLibrary: no library that draws SVG is installed.
    """
    try:
        return bytes(importlib.import_module("resvg_py").svg_to_bytes(svg_string=document))
    except (ImportError, OSError):
        pass
    try:
        return bytes(importlib.import_module("cairosvg").svg2png(bytestring=document.encode()))
    except (ImportError, OSError):  # CairoSVG without libcairo
        raise NoLibrary("no PNG here: install howdah[ui] (resvg-py) where this runs, or ask for .svg") from None
