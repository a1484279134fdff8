"""`howdah ssh-proxy`: lets ssh, scp and editors' remote modes enter a task, without an ssh server there.

ssh starts this command as its ProxyCommand. The command is the ssh server itself, on the user's own machine: each
command, shell and forwarded port of ssh becomes a stream of the relay. A user who can start it has the job's key, so
ssh asks for nothing more; the connection between the two is a pipe.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal as signals
import socket
import sys
from collections.abc import Sequence
from typing import Any

import click

from howdah.cli.i18n import _
from howdah.cli.job_choice import choose_job
from howdah.client.relay import RelayClient, frames_of
from howdah.config.extras import how_to_install
from howdah.errors import HowdahError
from howdah.spec import TaskId
from howdah.spec.codec import decode
from howdah.spec.values import dataclass
from howdah.wire import relay_messages as wire
from howdah.wire.relay_messages import CommandEnd, CommandRequest

PIECE = 1 << 16
SFTP_DIRECTORIES = ("/usr/lib/openssh", "/usr/libexec/openssh", "/usr/lib/ssh")
"""The directories of `sftp-server` on Debian, Red Hat and SUSE."""
LOOPBACK = ("localhost", "127.0.0.1", "::1", "")


@click.command(name="ssh-proxy")
@click.argument("job_id")
@click.argument("task", default="")
@click.option("--profile", default="", help="A profile of your configuration.")
def ssh_proxy(job_id: str, task: str, profile: str) -> None:
    """Serve an ssh connection to TASK (worker:0) of the running JOB_ID; ssh starts this command as its ProxyCommand."""
    try:
        import asyncssh  # noqa: F401
    except ImportError:
        install = how_to_install("ssh-proxy")
        raise click.UsageError(
            _("{module} is not installed here: {install}", module="asyncssh", install=install)
        ) from None
    relay = RelayClient(*choose_job(job_id, profile, acts=True))
    asyncio.run(_serve(relay, relay.task(task)))


async def _serve(relay: RelayClient, task: TaskId) -> None:
    """Serve the connection on the standard streams to its end."""
    import asyncssh

    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    key = asyncssh.generate_private_key("ssh-ed25519")
    sending = asyncio.ensure_future(_copy_from_stdin(ours))
    receiving = asyncio.ensure_future(_copy_to_stdout(ours))
    connection = await asyncssh.run_server(
        theirs,
        server_factory=lambda: _make_server(relay, task),
        server_host_keys=[key],
        encoding=None,
        line_editor=False,
    )
    await connection.wait_closed()
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(receiving, 1.0)
    sending.cancel()
    os._exit(0)  # a thread may wait for the standard input


async def _copy_from_stdin(ours: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    while data := await loop.run_in_executor(None, os.read, 0, PIECE):
        await loop.sock_sendall(ours, data)
    ours.shutdown(socket.SHUT_WR)


async def _copy_to_stdout(ours: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    while data := await loop.sock_recv(ours, PIECE):
        await loop.run_in_executor(None, _write_all, data)


def _write_all(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def sftp_command(directories: Sequence[str] = SFTP_DIRECTORIES) -> tuple[str, ...]:
    """Return a command that becomes the `sftp-server` of the first directory that has one."""
    # A shell that cannot exec ends there.
    tries = "; ".join(f"[ ! -x {each}/sftp-server ] || exec {each}/sftp-server 2>&-" for each in directories)
    return "/bin/sh", "-c", f"{tries}; echo 'howdah: this node has no sftp-server' >&2; exit 127"


def _make_server(relay: RelayClient, task: TaskId) -> Any:
    import asyncssh

    async def run(process: Any) -> None:
        await _run_process(process, relay, task)

    class Process(asyncssh.SSHServerProcess[bytes]):
        """Runs sftp as a program of the task; asyncssh's own sftp would serve this machine's files."""

        def subsystem_requested(self, subsystem: str) -> bool:
            """Return whether there is such a subsystem."""
            return subsystem == "sftp"

        def session_started(self) -> None:
            """Start the command, shell or sftp that the client has asked for."""
            if self.subsystem != "sftp":
                super().session_started()
                return
            streams = (asyncssh.SSHReader(self, self.channel), asyncssh.SSHWriter(self, self.channel))
            errors = asyncssh.SSHWriter(self, self.channel, asyncssh.EXTENDED_DATA_STDERR)
            self.sftp = asyncio.ensure_future(run(_SftpProcess(self.channel, *streams, errors)))

    class Server(asyncssh.SSHServer):
        """Admits every client at the other end of the pipe, and forwards ports of the task."""

        def begin_auth(self, username: str) -> bool:
            """Return that the client need not prove anything, because it could start this process."""
            return False

        def session_requested(self) -> Any:
            """Return the object that serves a command, a shell or sftp."""
            return Process(run, None, 0, False)

        def connection_requested(self, dest_host: str, dest_port: int, orig_host: str, orig_port: int) -> Any:
            """Return the function that forwards a connection to a port of the task; other hosts cannot be reached."""
            if dest_host not in LOOPBACK:
                raise asyncssh.ChannelOpenError(asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED, "ports of the task alone")

            async def forward(reader: Any, writer: Any) -> None:
                await _forward(relay, task, dest_port, reader, writer)

            return forward

    return Server()


@dataclass(frozen=True)
class _SftpProcess:
    """The part of a session of sftp that `_run_process` needs."""

    channel: Any
    stdin: Any
    stdout: Any
    stderr: Any
    subsystem: str = "sftp"
    command: str = ""
    term_type: str = ""

    def exit(self, status: int) -> None:
        """Tell the client how sftp ended."""
        self.channel.exit(status)


async def _forward(relay: RelayClient, task: TaskId, port: int, reader: Any, writer: Any) -> None:
    try:
        connection, early = await relay.open(task, port=str(port))
    except HowdahError as error:
        sys.stderr.write(f"howdah: {error}\n")
        writer.close()
        return
    far_reader, far_writer = await asyncio.open_connection(sock=connection)
    writer.write(early)

    async def copy(source: Any, sink: Any) -> None:
        while data := await source.read(PIECE):
            sink.write(data)
            await sink.drain()
        with contextlib.suppress(OSError):
            sink.write_eof()

    with contextlib.suppress(OSError):
        await asyncio.gather(copy(reader, far_writer), copy(far_reader, writer))
    far_writer.close()
    writer.close()


async def _run_process(process: Any, relay: RelayClient, task: TaskId) -> None:
    """Run a command, a shell or sftp of ssh in the task."""
    try:
        connection, early = await relay.open(task, command=_command_of(process))
    except HowdahError as error:
        process.stderr.write(f"howdah: {error}\n".encode())
        process.exit(255)
        return
    reader, writer = await asyncio.open_connection(sock=connection)
    sending = asyncio.ensure_future(_send_input(process, writer))
    try:
        ended = await _print_output(process, reader, early)
    finally:
        sending.cancel()
        writer.close()
    if ended is None:
        process.stderr.write(b"howdah: the connection to the task was lost\r\n")
        process.exit(255)
    elif ended.signal is not None:
        process.exit(128 + ended.signal)
    else:
        process.exit(ended.code or 0)


def _command_of(process: Any) -> CommandRequest:
    if process.subsystem == "sftp":
        return CommandRequest(argv=sftp_command())
    argv = ("/bin/sh", "-c", process.command) if process.command else ()
    if not process.term_type:
        return CommandRequest(argv=argv or ("/bin/sh",))
    columns, rows, _width, _height = process.term_size
    return CommandRequest(argv=argv, terminal=True, rows=rows, columns=columns, kind=process.term_type)


async def _send_input(process: Any, writer: asyncio.StreamWriter) -> None:
    import asyncssh

    while True:
        try:
            data = await process.stdin.read(PIECE)
        except asyncssh.TerminalSizeChanged as change:
            writer.write(wire.json_frame(wire.RESIZE, {"rows": change.height, "columns": change.width}))
            continue
        except asyncssh.SignalReceived as signal:
            number = getattr(signals, f"SIG{signal.signal}", 0)
            writer.write(wire.frame(wire.SIGNAL, b"%d" % number))
            continue
        except asyncssh.BreakReceived:
            continue
        writer.write(wire.frame(wire.INPUT, data))
        await writer.drain()
        if not data:
            return


async def _print_output(process: Any, reader: asyncio.StreamReader, early: bytes) -> CommandEnd | None:
    """Print what the command prints; return how it ended, None if the connection was lost before."""
    async for kind, content in frames_of(early, lambda: reader.read(PIECE)):
        if kind in (wire.OUTPUT, wire.ERRORS):
            stream = process.stdout if kind == wire.OUTPUT else process.stderr
            stream.write(content)
            await stream.drain()
        elif kind == wire.ENDED:
            return decode(CommandEnd, json.loads(content))
    return None
