"""howdah's extras, as pyproject.toml has them: docs/install.md says what each brings."""

from __future__ import annotations


def how_to_install(extra: str) -> str:
    """Return how to install an extra; howdah is installed from a clone."""
    return f"in howdah's clone: pip install '.[{extra}]'"
