"""howdah's extras, as in pyproject.toml; docs/install.md lists the packages of each."""

from __future__ import annotations


def how_to_install(extra: str) -> str:
    """Return how to install an extra; howdah is installed from a clone."""
    return f"in howdah's clone: pip install '.[{extra}]'"
