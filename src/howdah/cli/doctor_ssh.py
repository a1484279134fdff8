"""The doctor's checks of the hosts that ssh reaches."""

from __future__ import annotations

from collections.abc import Iterator

from howdah.cli.findings import Finding, fail, ok
from howdah.cli.i18n import _
from howdah.config.settings import Settings
from howdah.engines.ssh.engine import SshEngine, describe
from howdah.errors import HowdahError


def checks(settings: Settings) -> Iterator[Finding]:
    """Yield each host's own report."""
    try:
        for host, answer in SshEngine(settings.values).ask_hosts():
            if isinstance(answer, dict):
                room, free = describe(answer["room"]), describe(answer["free"])
                yield ok(f"ssh: {host.name}", _("{room}; free: {free}", room=room, free=free))
            else:
                yield fail(f"ssh: {host.name}", str(answer), f"{' '.join(host.ssh)} true")
    except HowdahError as error:
        yield fail("ssh", str(error), "howdah config set ssh.hosts HOST,HOST")
