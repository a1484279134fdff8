"""`python -m howdah.spark.run_function FILE` runs on a node: it calls the driver's function, which the file brings."""

from __future__ import annotations

import functools
import os
import pickle
import sys
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import Any

from howdah.spark.node_context import NodeContext

CLOUDPICKLE = "pyspark.cloudpickle"


def main() -> None:
    """Call the function with this node's context, and the arguments that came with it."""
    # After the program's own path, as in a worker of Spark: the modules that Spark has brought, and pyspark.
    sys.path += [entry for entry in os.environ.get("SPARK_PYTHON_PATH", "").split(os.pathsep) if entry not in sys.path]
    with Path(sys.argv[1]).open("rb") as file:  # the driver has written it, into the job's own directory
        cluster, key, function, arguments = _Unpickler(file).load()
    context = NodeContext(cluster, key)
    try:
        function(context, *arguments)
    finally:
        context.close()


class _Unpickler(pickle.Unpickler):
    """Finds what pyspark has pickled functions with, without importing pyspark itself, which takes most of the time
    until a function is called, and which few functions need."""

    def find_class(self, module_name: str, global_name: str) -> Any:
        if module_name.startswith(CLOUDPICKLE) and (module := _cloudpickle()) is not None:
            return getattr(module, global_name)
        return super().find_class(module_name, global_name)


@functools.cache
def _cloudpickle() -> Any:
    """Return pyspark's copy of cloudpickle; None if it cannot be imported alone, as in Spark 3."""
    pyspark = find_spec("pyspark")
    places = [f"{place}/cloudpickle" for place in (pyspark.submodule_search_locations or [])] if pyspark else []
    found = PathFinder.find_spec("cloudpickle", places)
    if found is None or found.loader is None:
        return None
    module = module_from_spec(found)
    try:
        found.loader.exec_module(module)
    except ImportError:
        return None
    return module


if __name__ == "__main__":
    main()
