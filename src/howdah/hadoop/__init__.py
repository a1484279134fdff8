"""Hadoop's own remote calls, logged in by name, token or Kerberos: what the data layer and the YARN engine share."""
