"""Opens links in a browser, and says how a browser on another machine reaches them."""

from __future__ import annotations

import contextlib
import getpass
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import click

from howdah.cli.i18n import _
from howdah.cli.terminal import print_result

READ_S = 5.0
"""Seconds within which a browser must have read the file that leads it to a link."""


@contextlib.contextmanager
def opened(link: str) -> Iterator[None]:
    """Open a link in this machine's browser. The browser is given a file that only this user can read and that exists
    only inside the context, because others see the command line of a browser."""
    import html  # most commands open nothing
    import webbrowser

    with tempfile.TemporaryDirectory() as private:
        page = Path(private, "link.html")
        page.write_text(f'<meta http-equiv="refresh" content="0; url={html.escape(link)}">\n', "utf-8")
        if not webbrowser.open(page.as_uri()):
            click.echo(_("no browser can be opened here"), err=True)
        yield


def print_link(link: str, as_json: bool, text: str = "") -> None:
    """Print a link, as JSON or as `text` if it is given, and how to reach it by ssh."""
    print_result(text or link, {"url": link}, as_json)
    tell_ssh_tunnel(link)


def tell_ssh_tunnel(link: str) -> None:
    """Print the command by which a browser reaches this machine's loopback, if the user has come by ssh."""
    address, came_by = urlsplit(link), os.environ.get("SSH_CONNECTION", "").split()
    if len(came_by) == 4 and address.port and address.hostname in ("127.0.0.1", "localhost", "::1"):
        host = f"{getpass.getuser()}@{came_by[2]}"
        command = f"ssh -L {address.port}:127.0.0.1:{address.port} {host}"
        click.echo(_("for a browser on your own machine: {command}", command=command), err=True)
