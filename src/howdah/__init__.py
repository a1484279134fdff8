"""Howdah runs distributed training jobs on this machine, on Hadoop YARN, Slurm and Kubernetes, and on hosts by ssh.

`Client` is its interface for programs."""

__all__ = ["Client"]


_MODULES = {"Client": "howdah.client.sdk", "load_ipython_extension": "howdah.jupyter.cell_magic"}


def __getattr__(name: str) -> object:
    """`howdah.Client`, and what `%load_ext howdah` calls, imported only when it is asked for: containers have no use
    for either."""
    if name in _MODULES:
        import importlib

        return getattr(importlib.import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'howdah' has no attribute {name!r}")
