"""Howdah runs distributed training jobs on this machine, on Hadoop YARN, Slurm, Kubernetes and Spark, and on hosts by
ssh.

`Client` is its interface for programs; `run`, `run_all`, `map` and `distributed` call a Python function as a job,
and `kept_results` loads what its tasks returned before it failed."""

__all__ = ["Client", "distributed", "kept_results", "run", "run_all"]  # `map` would replace Python's own


_MODULES = {
    "Client": ("howdah.client.sdk", "Client"),
    "distributed": ("howdah.functions", "distributed"),
    "kept_results": ("howdah.functions", "kept_results"),
    "load_ipython_extension": ("howdah.jupyter.cell_magic", "load_ipython_extension"),
    "map": ("howdah.functions", "map_items"),
    "run": ("howdah.functions", "run"),
    "run_all": ("howdah.functions", "run_all"),
}


def __getattr__(name: str) -> object:
    """Import a name only when it is asked for: containers have no use for any of them."""
    if name in _MODULES:
        import importlib

        module, attribute = _MODULES[name]
        return getattr(importlib.import_module(module), attribute)
    raise AttributeError(f"module 'howdah' has no attribute {name!r}")
