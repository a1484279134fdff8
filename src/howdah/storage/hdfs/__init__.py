"""HDFS: its client, direct reads from DataNodes, and errors for people."""
