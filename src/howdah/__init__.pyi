from howdah.client.sdk import Client as Client
from howdah.functions import distributed as distributed
from howdah.functions import map_items as map  # noqa: F401 - public, though not of `import *`
from howdah.functions import run as run
from howdah.functions import run_all as run_all

__all__ = ["Client", "distributed", "run", "run_all"]
