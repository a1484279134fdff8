"""`howdah data`: files on HDFS, or any file system, from a machine without a Hadoop client."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import click

from howdah.cli import streams
from howdah.cli.i18n import _, translate_stored
from howdah.cli.interrupts import ENDING, Interrupts, SignalReceived
from howdah.cli.terminal import columns, json_option
from howdah.client.engine_registry import settings_for
from howdah.errors import HowdahError, StagingError
from howdah.hadoop import conf as hadoop_conf
from howdah.inputs.transfer import download, list_copies, upload
from howdah.localfiles import regular_file
from howdah.localfiles.file_errors import explain
from howdah.outputs.snapshot import files_in_earlier_snapshots
from howdah.spec import uris
from howdah.spec.codec import to_json
from howdah.spec.message import message
from howdah.storage.factory import filesystem
from howdah.storage.filesystem import Entry, FileSystem, make_directory_like
from howdah.storage.hdfs.call_timeout import start_call
from howdah.storage.linked_tree import describe_left_out
from howdah.storage.local import dangling_links
from howdah.storage.progress import no_progress
from howdah.wire.helper_messages import FileCopy


def _refuse_empty(ctx: click.Context, param: click.Parameter, value: str) -> str:
    """Refuse an empty path, which comes from an empty variable of a script: it would mean the current directory."""
    if not value:
        raise click.BadParameter(_("it is empty; the current directory is '.'"), ctx, param)
    return value


@click.group()
@click.option("--profile", default="", help="A profile of your configuration.")
def data(profile: str) -> None:
    """List, fetch, store, show and remove files on HDFS. Paths without a scheme are on the cluster's file system."""
    conf_dir = settings_for({"profile": profile})["hadoop_conf_dir"]
    if conf_dir:
        os.environ["HADOOP_CONF_DIR"] = conf_dir  # every file system of this process reads this variable


def _uri(path: str) -> str:
    root, home = _root_and_home()
    return uris.absolute(path, root, home)


def _root_and_home() -> tuple[str, str]:
    """Return the root of the file system of paths without a scheme, and the directory in which relative paths are."""
    conf = hadoop_conf.load(hadoop_conf.directory())
    root = uris.root(hadoop_conf.default_filesystem(conf))
    return root, uris.of_local(Path.cwd()) if root.startswith("file:") else hadoop_conf.home(conf, root)


def _literal_entry(fs: FileSystem, path: str, uri: str) -> Entry | None:
    """Return the entry whose name is exactly PATH; None if there is none and PATH is a pattern."""
    return None if uris.is_pattern(path) and not fs.exists(uri) else _entry(fs, uri)


def _matches(fs: FileSystem, path: str, uri: str, more: Iterable[Entry] = ()) -> list[Entry]:
    """Return the entries that the pattern `path`, whose URI is `uri`, matches, and those of `more` that it matches."""
    found = [*fs.glob(uri), *more]
    if not found:
        raise StagingError(f"{path}: nothing matches")
    return found


def _readable_entry(fs: FileSystem, uri: str) -> Entry:
    """Return the entry of a file or directory; refuse one that can't be read to its end: a pipe, a device."""
    if uri.startswith("file:"):
        regular_file.exists(uris.path(uri))
    return _entry(fs, uri)


def _entry(fs: FileSystem, uri: str) -> Entry:
    entry = fs.stat(uri)
    if entry is None:
        raise StagingError(f"{uri}: no such file or directory")
    return entry


@data.command()
@click.argument("path", callback=_refuse_empty)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def ls(path: str, as_json: bool) -> None:
    """List PATH, a file, a directory, or a pattern."""
    uri = _uri(path)
    fs = filesystem(uri)
    entry = _literal_entry(fs, path, uri)
    entries = _matches(fs, path, uri) if entry is None else fs.children(uri) if entry.is_dir else [entry]
    entries.sort(key=lambda entry: entry.uri)
    if as_json:
        for entry in entries:
            record = {"uri": entry.uri, "size": entry.size, "modified_ms": entry.modified_ms, "is_dir": entry.is_dir}
            click.echo(to_json(record))
        return
    rows: list[tuple[str, ...]] = [
        (str(entry.size), _time_text(entry), entry.uri + "/" * entry.is_dir) for entry in entries
    ]
    for line in columns(rows):
        click.echo(line)


def _time_text(entry: Entry) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.modified_ms / 1000))


@data.command()
@click.argument("path", callback=_refuse_empty)
@click.argument("local", default=".", callback=_refuse_empty)
@click.option("--overwrite", is_flag=True, help="Replace files that exist.")
@json_option
def get(path: str, local: str, overwrite: bool, as_json: bool) -> None:
    """Fetch PATH, a file or a whole directory, to LOCAL; into LOCAL, if that is a directory."""
    uri = _uri(path)
    fs = filesystem(uri)
    entry = _readable_entry(fs, uri)
    target = Path(local)
    is_into = (regular_file.exists(target) and target.is_dir()) or (local.endswith("/") and not entry.is_dir)
    target = target / uris.name(uri) if is_into else target
    directories = list[Path]()
    if entry.is_dir:
        found = [(target / uris.below(each.uri, uri), each) for each in fs.list_tree(uri, _tell)]
        directories = [target, *(place for place, each in found if each.is_dir)]
        copies = [_copy(place, each) for place, each in found if not each.is_dir]
        copies += [FileCopy(str(target / name), there) for name, there in files_in_earlier_snapshots(fs, uri).items()]
    else:
        _warn_of_unflushed(fs, entry)
        copies = [_copy(target, entry)]
    _refuse_what_is_in_the_way(directories, copies)
    _refuse_existing([copy.path for copy in copies if not overwrite and os.path.lexists(copy.path)], len(copies))
    if uris.split(uri)[0] == "file":
        _make_directories_like(uri, directories, copies)
    for place in directories:
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise explain(error, str(place)) from error
    _move(lambda stopped: download(copies, no_progress, stopped=stopped), str(target), as_json)


def _make_directories_like(uri: str, directories: list[Path], copies: list[FileCopy]) -> None:
    """Make directories with the permission bits of those that they copy; the first is the copy of `uri`."""
    here = filesystem("file:///")
    parents = (Path(copy.path).parent for copy in copies) if directories else ()
    for place in dict.fromkeys([*directories, *parents]):
        source = os.path.normpath(Path(uris.path(uri), place.relative_to(directories[0])))
        make_directory_like(here, source, uris.of_local(place.absolute()), is_top=place == directories[0])


def _refuse_what_is_in_the_way(directories: list[Path], copies: list[FileCopy]) -> None:
    """Refuse, before anything is fetched, conflicts that --overwrite does not solve: a file where a directory is to be,
    a directory where a file is to be."""
    needed = dict.fromkeys([*directories, *(Path(copy.path).parent for copy in copies)])
    for place in dict.fromkeys(each for directory in needed for each in (directory, *directory.parents)):
        if os.path.lexists(place) and not place.is_dir():
            raise StagingError(message("{path} is no directory, and is in the way of one", path=str(place)))
    for copy in copies:
        if os.path.isdir(copy.path):  # noqa: PTH112 - there may be a million
            raise StagingError(message("{path} is a directory, and is in the way of a file", path=copy.path))


def _copy(path: Path, entry: Entry) -> FileCopy:
    return FileCopy(str(path), entry.uri, -1 if entry.may_be_open else entry.size)


@data.command()
@click.argument("local", callback=_refuse_empty)
@click.argument("path", callback=_refuse_empty)
@click.option("--overwrite", is_flag=True, help="Replace files that exist.")
@json_option
def put(local: str, path: str, overwrite: bool, as_json: bool) -> None:
    """Store LOCAL, a file or a whole directory, as PATH; store a file in PATH, if that is a directory."""
    if not regular_file.exists(local):
        raise StagingError(f"{local}: no such file or directory")
    uri = _uri(path)
    if Path(local).is_dir():
        copies, empty = list_copies(local, uri, _tell)
    else:
        is_into = path.endswith("/") or ((entry := filesystem(uri).stat(uri)) is not None and entry.is_dir)
        uri = uris.join(uri, Path(local).name) if is_into else uri
        copies, empty = [FileCopy(local, uri)], []
    _refuse_existing([copy.uri for copy in copies if not overwrite and filesystem(uri).exists(copy.uri)], len(copies))
    if Path(local).is_dir():
        make_directory_like(filesystem(uri), local, uri, is_top=True)
    for directory in empty:
        name = uris.local_name(uris.below(directory, uri), uri)
        make_directory_like(filesystem(uri), str(Path(local, name)), directory)
    _move(lambda stopped: upload(copies, no_progress, stopped), uri, as_json)


def _refuse_existing(there: list[str], count: int) -> None:
    if there:
        raise StagingError(f"{there[0]}: exists already ({len(there)} of {count} do); allow it with --overwrite")


def _tell(path: str, reason: str) -> None:
    click.echo(f"howdah: {translate_stored(describe_left_out(path, reason))}", err=True)


@data.command()
@click.argument("path", callback=_refuse_empty)
@click.option("-r", "--recursive", is_flag=True, help="Also remove directories, with all their content.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def rm(path: str, recursive: bool, as_json: bool) -> None:
    """Remove PATH, a file or all matches of a pattern, for good: there is no trash."""
    uri = _uri(path)
    fs = filesystem(uri)
    entry = _dangling_link(uri) or _literal_entry(fs, path, uri)
    dangling = dangling_links(uri) if uri.startswith("file:") else ()
    entries = _matches(fs, path, uri, dangling) if entry is None else [entry]
    for entry in entries:
        if uris.path(entry.uri).strip("/") == "":
            raise StagingError(f"{entry.uri}: the root of a file system is not removed")
        if _holds_home(entry.uri):
            raise StagingError(f"{entry.uri} is, or holds, your home or the current directory, and is not removed")
        if entry.is_dir and not recursive:
            raise StagingError(f"{entry.uri} is a directory: remove it with all below it by --recursive")
    for entry in entries:
        fs.delete(entry.uri)
        if as_json:
            click.echo(to_json({"removed": entry.uri}))
        else:
            click.echo(_("removed: {uri}", uri=entry.uri), err=True)


def _dangling_link(uri: str) -> Entry | None:
    """Return a link of this machine that leads to nothing, which has no status of its own to list."""
    path = Path(uris.path(uri))
    is_one = uri.startswith("file:") and path.is_symlink() and not path.exists()
    return Entry(uri, 0, 0) if is_one else None


def _holds_home(uri: str) -> bool:
    home = _root_and_home()[1]
    homes = {home, *(uris.of_local(path.resolve()) for path in (Path.cwd(), Path.home()))}
    if not uri.startswith("file:"):  # the home or the given path may be mounted there
        homes.add(filesystem(home).resolve(home))
    names = {uris.normalize(uri), filesystem(uri).resolve(uri)}
    return any(f"{home.rstrip('/')}/".startswith(f"{name.rstrip('/')}/") for home in homes for name in names)


@data.command()
@click.argument("path", callback=_refuse_empty)
@click.option("-c", "--bytes", "count", default=4096, show_default=True, type=click.IntRange(0), help="How many bytes.")
@json_option
def head(path: str, count: int, as_json: bool) -> None:
    """Print the beginning of the file PATH."""
    uri = _uri(path)
    fs = filesystem(uri)
    entry = _readable_entry(fs, uri)
    if entry.is_dir:
        raise StagingError(f"{uri} is a directory")
    _warn_of_unflushed(fs, entry)
    beginning = _read_beginning(fs, uri, count)
    if as_json:
        click.echo(to_json({"uri": uri, "bytes": len(beginning), "text": beginning.decode("utf-8", "replace")}))
        return
    sys.stdout.buffer.write(beginning)
    sys.stdout.buffer.flush()


def _warn_of_unflushed(fs: FileSystem, entry: Entry) -> None:
    """Warn that more of the file may have been written than can be read now."""
    if entry.may_be_open and (reason := fs.why_not_flushed()):
        text = _(
            "{uri}: if it is being written, only what is closed of it is seen: {reason}", uri=entry.uri, reason=reason
        )
        click.echo(f"howdah: {text}", err=True)


def _read_beginning(fs: FileSystem, uri: str, count: int) -> bytes:
    found = bytearray()
    for piece in fs.iter_chunks(uri) if count > 0 else ():
        found += piece
        if len(found) >= count:
            break
    return bytes(found[:count])


def _move(transfer: Callable[[threading.Event], tuple[int, int]], where: str, as_json: bool) -> None:
    """Move files. A signal ends this; then files that are only partly written are removed first."""
    stopped = threading.Event()
    with Interrupts(ENDING) as interrupts:
        moving = start_call(lambda: transfer(stopped))
        try:
            files, size = interrupts.wait(moving)
        except SignalReceived:
            stopped.set()
            click.echo(_("interrupted: what is half done is removed"), err=True)
            with contextlib.suppress(HowdahError):
                interrupts.finish(moving)
            streams.give_up_output()  # a server that does not answer may still hold a thread
            raise SystemExit(130) from None
    if as_json:
        click.echo(to_json({"files": files, "bytes": size, "where": where}))
    else:
        click.echo(_("{files} files, {size} bytes: {where}", files=files, size=size, where=where), err=True)
