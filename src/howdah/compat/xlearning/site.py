"""Finds and reads `xlearning-site.xml` and `hbox-site.xml`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from howdah.errors import SpecError


def folder(prefix: str, environ: Mapping[str, str]) -> Path | None:
    """Return $HBOX_CONF_DIR, else $HBOX_HOME/conf (XLEARNING_… for the older one); None if neither is set.

    Raises:
        SpecError: the variable names no directory.
    """
    name = prefix.upper()
    if environ.get(f"{name}_CONF_DIR"):
        named = Path(environ[f"{name}_CONF_DIR"])
        if not named.is_dir():
            raise SpecError.at(f"{name}_CONF_DIR", f"no such directory: {named}")
        return named
    return Path(environ[f"{name}_HOME"], "conf") if environ.get(f"{name}_HOME") else None


def properties(prefix: str, environ: Mapping[str, str]) -> Mapping[str, str]:
    """Return what the site file sets, with variables replaced as in Hadoop's own files; nothing if there is no file.

    Raises:
        SpecError: the file is no configuration; names the line.
    """
    where = folder(prefix, environ)
    if where is None:
        return {}
    from howdah.hadoop import conf  # most users have no such file

    raw, _ = conf.merge([where / f"{prefix}-site.xml"])
    return {name: conf.expand(value, raw.get) for name, value in raw.items()}
