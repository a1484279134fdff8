"""Marks in the queues between Spark and a node."""


class Marker:
    """A mark between rows."""


class EndPartition(Marker):
    """Comes after the last row of a partition."""
