"""howdah's extras, as pyproject.toml has them: docs/install.md says what each brings."""

from __future__ import annotations


def how_to_install(extra: str) -> str:
    """What to do where a library of this extra lacks; howdah is installed from a clone."""
    return f"in howdah's clone: pip install '.[{extra}]'"
