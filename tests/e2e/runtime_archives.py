"""Lets the homes of tests share the archive of howdah's runtime, which takes some seconds to build."""

from __future__ import annotations

from pathlib import Path


def share_runtime_archives(home: Path, archives: Path) -> None:
    """Let a home use the archives in the directory `archives`."""
    link = home / "cache" / "runtime"
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.exists():
        link.symlink_to(archives)
