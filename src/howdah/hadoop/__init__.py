"""Hadoop's RPC, logins by name, token or Kerberos, and configuration files, for `storage` and the YARN engine."""
