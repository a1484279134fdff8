"""Howdah runs distributed training jobs on this machine and on Hadoop YARN. `Client` is its interface for programs."""

__all__ = ["Client"]


def __getattr__(name: str) -> object:
    """`howdah.Client`, imported only when it is asked for: containers have no use for it."""
    if name == "Client":
        import importlib

        return importlib.import_module("howdah.client.sdk").Client
    raise AttributeError(f"module 'howdah' has no attribute {name!r}")
