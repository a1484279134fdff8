"""A chart as PNG, by the first library that is here: resvg (`resvg-py`) draws SVG by itself, CairoSVG needs Cairo."""

from __future__ import annotations

import importlib

from howdah.eventfiles.errors import NoLibrary


def png(document: str) -> bytes:
    """The SVG document as an image.

    Raises:
        NoLibrary: nothing here can draw it.
    """
    for draw in (_resvg, _cairo):
        try:
            return draw(document)
        except (ImportError, OSError):  # CairoSVG without libcairo
            continue
    raise NoLibrary("no PNG here: install howdah[ui] (resvg-py) where this runs, or ask for .svg")


def _resvg(document: str) -> bytes:
    module = importlib.import_module("resvg_py")
    return bytes(module.svg_to_bytes(svg_string=document))


def _cairo(document: str) -> bytes:
    return bytes(importlib.import_module("cairosvg").svg2png(bytestring=document.encode()))
