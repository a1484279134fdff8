"""Finds out under which user name a cluster knows this process."""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import Mapping


def is_secure(conf: Mapping[str, str]) -> bool:
    """Return whether this configuration demands Kerberos."""
    return conf.get("hadoop.security.authentication", "simple").strip().lower() == "kerberos"


def user(secure: bool, environment: Mapping[str, str] = os.environ) -> str:
    """Return HADOOP_USER_NAME, else the account of this process; with Kerberos the short name of the ticket's holder.

    The short name is the principal's first part, as on a cluster without rules of its own
    (hadoop.security.auth_to_local). In a container, where a token stands for the user, the account has the user's name.
    """
    if not secure:
        return environment.get("HADOOP_USER_NAME") or getpass.getuser()
    from howdah.hadoop.gss import ticket_holder  # not worth its import where there is no Kerberos

    principal = "" if environment.get("HADOOP_TOKEN_FILE_LOCATION") else ticket_holder()
    return re.split("[/@]", principal, maxsplit=1)[0] or getpass.getuser()
