"""The module tensorflowonspark, on howdah: names, arguments and defaults are those of TensorFlowOnSpark 2.2.5."""

__version__ = "2.2.5"
