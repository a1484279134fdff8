"""A job's files on their way into containers: listed, packed, uploaded once by content hash."""
