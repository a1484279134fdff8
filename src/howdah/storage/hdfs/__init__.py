"""HDFS: its client, direct reads from DataNodes, lease recovery, errors in words."""
