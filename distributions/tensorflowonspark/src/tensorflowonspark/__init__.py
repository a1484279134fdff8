"""The module tensorflowonspark, on howdah: names, arguments and defaults are those of TensorFlowOnSpark 2.2.5."""

import logging

# As in 2.2.5, what programs and their nodes log at this level can be read, unless they have set up logging themselves.
logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")

__version__ = "2.2.5"
