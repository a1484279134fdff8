"""Tracks which Secret of a job holds the key of which pod, and which Secrets no pod needs any more.

A master may create and delete Secrets, but not list them (docs/kubernetes.md, "Rights").
"""

from __future__ import annotations

import collections
from collections.abc import Collection, Mapping
from typing import Any

KEYS_IN_SECRET = 1000
"""The most keys in one Secret, which has at most 1 MiB."""


class KeySecrets:
    """Counts the pods that need each Secret. A name without a pod also needs its Secret, while a pod of that name may
    still be created."""

    def __init__(self) -> None:
        self._secret_of: dict[str, str] = {}
        self._users: collections.Counter[str] = collections.Counter()
        self.unneeded: set[str] = set()
        """Secrets that no pod needs, and that are still to be deleted."""

    def add(self, secret: str, names: Collection[str]) -> None:
        """Note that a Secret holds the keys of the pods with these names."""
        self._secret_of.update(dict.fromkeys(names, secret))
        self._users[secret] += len(names)

    def add_pod(self, pod: Mapping[str, Any], is_needed: bool) -> None:
        """Note the Secret that a pod of an earlier master mounts."""
        (secret,) = [each["secret"]["secretName"] for each in pod["spec"]["volumes"] if each["name"] == "key"] or [""]
        if secret and is_needed:
            self.add(secret, [pod["metadata"]["name"]])
            self.unneeded.discard(secret)
        elif secret and secret not in self._users:
            self.unneeded.add(secret)

    def secret_of(self, name: str) -> str:
        """Return the Secret that holds the key of a pod."""
        return self._secret_of[name]

    def drop(self, name: str) -> None:
        """Note that there is no pod of this name any more, or none that needs its key."""
        secret = self._secret_of.pop(name, "")
        if secret:
            self._users[secret] -= 1
            if not self._users[secret]:
                del self._users[secret]
                self.unneeded.add(secret)

    @property
    def all(self) -> set[str]:
        """Return all Secrets that exist, or may."""
        return {*self._users, *self.unneeded}
