"""File systems: one interface for this machine, HDFS, viewfs, object stores and whatever fsspec reaches."""
