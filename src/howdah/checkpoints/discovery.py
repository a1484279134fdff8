"""`python -m howdah.checkpoints.discovery find` finds the newest checkpoint in a directory that is whole.

A helper process that the master runs (`howdah.wire.helper_main`). Programs die while they write: the newest checkpoint
by name or time may be one that cannot be read.

A TensorFlow checkpoint is named by its prefix, a sharded one by its directory, any other by its file.
"""

from __future__ import annotations

import contextlib
import fnmatch
import json
import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Iterator

from howdah.checkpoints import file_validation, replacement_note
from howdah.checkpoints.directory_snapshot import is_temporary
from howdah.errors import StagingError
from howdah.spec import uris
from howdah.spec.staged import HOWDAHS_FILES
from howdah.spec.values import dataclass
from howdah.storage.factory import filesystem
from howdah.storage.filesystem import Entry, FileSystem, is_temporary_name
from howdah.wire.helper_main import HelperReply, run_helper_main

MARKERS = ("_SUCCESS", "_COMPLETE", "COMPLETE", "_DONE", "DONE", ".complete", ".done", "commit_success.txt")
MAX_TRIED, MAX_REPORTED = 50, 10

_FILES = (".pt", ".pth", ".ckpt", ".bin", ".tar", ".keras", ".npz", ".safetensors", ".h5", ".hdf5", ".pkl", ".joblib")
_TORCH = (".pt", ".pth", ".ckpt", ".bin", ".tar", ".safetensors")
_HUGGING_FACE = {
    "trainer_state.json",
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
}
_DEEPSPEED = re.compile(r"mp_rank_\d+_model_states\.pt|.*_optim_states\.pt")
_TEMPORARY_OUTPUT = re.compile(r"\.howdah-.+-\d+(-saves|-removed|-replaced)?")
_SHARD = re.compile(rb"__\d+_\d+\.distcp")
_PARTS = {
    "torch-sharded": re.compile(r"[^/]+\.distcp|\.metadata"),
    "tensorflow-model": re.compile(r"[^/]+\.pb|(variables|assets|assets\.extra)/.*", re.DOTALL),
}


WHOLE = "all"
"""The rule by which the directory with all its files is one checkpoint, such as a user's home."""


@dataclass(frozen=True)
class FoundCheckpoint:
    """A checkpoint in a directory; it may be incomplete."""

    name: str
    """Path below the directory; "" for the directory itself."""
    format: str
    """`torch`, `tensorflow`, ..."""
    files: tuple[str, ...]
    """The files of the checkpoint, by their paths below the directory."""
    modified_ms: int
    """When the newest file of the checkpoint was changed."""


@dataclass(frozen=True)
class CheckpointSearch:
    """The result of a search."""

    checkpoint: FoundCheckpoint | None = None
    """The newest checkpoint that is whole; None when there is none."""
    skipped: tuple[str, ...] = ()
    """A sentence for each newer checkpoint that is incomplete."""


class CheckpointTree:
    """The files below a directory, except those behind links to directories. Temporary files are left out, unless
    `rule` takes all. With `files` only these files are taken."""

    def __init__(self, fs: FileSystem, directory: str, rule: str = "", files: Iterable[Entry] | None = None) -> None:
        self.fs, self.directory, self._rule, self._is_left_out = fs, directory, rule, names_left_out(rule)
        self.entries: dict[str, Entry] = {}
        self.sizes: dict[str, int] = {}
        self.empty: list[str] = []
        """The names of the empty directories that were entered."""
        self.half_written: list[Entry] = []
        """Files under temporary names, which a writer is writing or has left when it was killed; files of outputs are
        not among them."""
        self._torn: set[str] | None = None
        self.note = ""
        """The URI of the note that says which files of a checkpoint are being replaced, or were when the replacement
        broke off; "" if there is none."""
        self.left_out: dict[str, str] = {}
        """By name, why something there can't be followed or copied."""
        root = fs.stat(directory) if files is None else None
        if files is not None:
            self._add(files)
        elif root is not None and root.is_dir:
            self._add(fs.walk(directory))

    def follow(self, name: str) -> None:
        """Add the targets of the links in the directory `name` ("" is the whole), and find the empty directories.
        Directories that can't be listed are left out."""
        top, reasons = uris.join(self.directory, name), dict[str, str]()
        self._add(self.fs.list_tree(top, reasons.__setitem__, skip_unreadable=True))
        shown = ((posixpath.relpath(path, uris.path(self.directory)), reason) for path, reason in reasons.items())
        self.left_out = {name: reason for name, reason in shown if not self._is_ignored(name)}

    def _add(self, found: Iterable[Entry]) -> None:
        for entry in found:
            name = uris.below(entry.uri, self.directory)
            if self._is_ignored(name):
                if name == replacement_note.NAME:
                    self.note = entry.uri
                if is_temporary_name(posixpath.basename(name)) and not any(map(is_own_file, name.split("/"))):
                    self.half_written.append(entry)
                continue
            if entry.is_dir:
                self.empty.append(name)
            else:
                self.entries[name], self.sizes[name] = entry, entry.size

    def _is_ignored(self, name: str) -> bool:
        if self._rule == WHOLE:
            return is_own_file(name)
        *directories, last = name.split("/")
        return any(map(is_temporary, directories)) or self._is_left_out(last)

    def find_defect(self, name: str) -> str | None:
        """Return the defect of one file; None when its format does not tell."""
        with self.fs.open_read(self.entries[name].uri) as file:
            found = file_validation.find_defect(file, name, self.sizes[name])
        return "" if found is None and name.endswith((".h5", ".hdf5")) else found

    def is_torn(self, checkpoint: FoundCheckpoint) -> bool:
        """Return whether some of a checkpoint's files were replaced before the replacement of the others broke off."""
        if self._torn is None:
            noted = dict[str, object]()
            if self.note:
                with contextlib.suppress(StagingError):  # removed since it was listed: nothing broke off
                    noted = replacement_note.read(self.fs, self.note)
            self._torn = replacement_note.find_torn(noted, self.entries)
        return not self._torn.isdisjoint(checkpoint.files)

    def read(self, name: str, limit: int = file_validation.TEXT_LIMIT) -> bytes:
        """Read the beginning of a file."""
        with self.fs.open_read(self.entries[name].uri) as file:
            return file.read(limit)

    def modified_ms(self, names: Iterable[str]) -> int:
        """Return when the newest of these files was changed."""
        return max((self.entries[name].modified_ms for name in names), default=0)


def is_own_file(name: str) -> bool:
    """Return whether a file in a directory of checkpoints is howdah's own, or belongs to an output that howdah makes
    there."""
    first = name.partition("/")[0]
    return bool(HOWDAHS_FILES.fullmatch(first) or _TEMPORARY_OUTPUT.fullmatch(first))


def is_mark(name: str, rule: str = "") -> bool:
    """Return whether a file of this name is written when its checkpoint is complete."""
    kind, _, mark = rule.partition(":")
    return posixpath.basename(name) in (*MARKERS, "saved_model.pb") or (kind == "marker" and name.endswith(mark))


def names_left_out(rule: str) -> Callable[[str], bool]:
    """Return a function that takes a name without its directory, and returns whether it is no part of a checkpoint: it
    is hidden or temporary, and does not mark a checkpoint as complete."""
    kind, _, mark = rule.partition(":")
    marks: Collection[str] = {*MARKERS, posixpath.basename(mark)} if kind == "marker" else MARKERS
    return lambda name: is_temporary(name) and name not in marks


def find(fs: FileSystem, directory: str, rule: str = "") -> CheckpointSearch:
    """Find the newest whole checkpoint in `directory` and below, by `rule` (the spec's `checkpoint.valid`).

    Raises:
        StagingError, EngineUnavailable: the directory can't be read.
    """
    return find_newest(CheckpointTree(fs, directory, rule), rule)


def find_newest(tree: CheckpointTree, rule: str = "") -> CheckpointSearch:
    """Find the newest whole checkpoint of a tree. Raises as `find`."""
    skipped: list[str] = []
    for checkpoint in candidates(tree, rule)[:MAX_TRIED]:
        try:
            problem = find_defect(tree, checkpoint, rule)
        except StagingError as error:  # removed since it was listed, or not readable
            problem = str(error)
        if not problem:
            return CheckpointSearch(checkpoint, tuple(skipped[:MAX_REPORTED]))
        skipped.append(f"{checkpoint.name or '.'}: {problem}")
    return CheckpointSearch(None, tuple(skipped[:MAX_REPORTED]))


def candidates(tree: CheckpointTree, rule: str = "") -> list[FoundCheckpoint]:
    """List what could be a checkpoint, the newest first."""
    kind, _, pattern = rule.partition(":")
    if kind == WHOLE:
        names = tuple(tree.entries)
        found = iter([FoundCheckpoint("", WHOLE, names, tree.modified_ms(names))] if names else [])
    elif kind == "glob":
        found = _matching(tree, pattern)
    elif kind == "marker":
        found = _marked_checkpoints(tree, pattern)
    else:
        found = (each for each in _recognised_checkpoints(tree) if kind in ("", each.format.partition("-")[0]))
    return sorted(found, key=lambda each: (each.modified_ms, _number(each.name), each.name), reverse=True)


def _number(name: str) -> int:
    numbers = re.findall(r"\d+", posixpath.basename(name))
    return int(numbers[-1]) if numbers else 0


def _directories(tree: CheckpointTree) -> dict[str, list[str]]:
    """Return all files below each directory, outer directories first."""
    found: dict[str, list[str]] = {}
    for name in tree.entries:
        directory = posixpath.dirname(name)
        while True:
            found.setdefault(directory, []).append(name)
            if not directory:
                break
            directory = posixpath.dirname(directory)
    return dict(sorted(found.items(), key=lambda item: (item[0].count("/") + bool(item[0]), item[0])))


def _matching(tree: CheckpointTree, pattern: str) -> Iterator[FoundCheckpoint]:
    def matches(name: str) -> bool:
        known = {name, uris.local_name(name, tree.directory)}  # HDFS takes no colon
        return any(fnmatch.fnmatchcase(each, pattern) for each in known)

    for directory, names in _directories(tree).items():
        if directory and matches(directory):
            yield FoundCheckpoint(directory, "glob", tuple(names), tree.modified_ms(names))
    for name in tree.entries:
        if matches(name):
            yield FoundCheckpoint(name, "glob", (name,), tree.modified_ms([name]))


def _marked_checkpoints(tree: CheckpointTree, marker: str) -> Iterator[FoundCheckpoint]:
    """Yield directories that hold a file `marker`, and files beside which another has the marker (`model.pt.done`)."""
    for directory, names in _directories(tree).items():
        if posixpath.join(directory, marker) in tree.entries or (directory and "/" not in directory):
            yield FoundCheckpoint(directory, "marker", tuple(names), tree.modified_ms(names))
    for name in tree.entries:
        if name + marker in tree.entries:
            yield FoundCheckpoint(name, "marker", (name, name + marker), tree.modified_ms([name]))


def _recognised_checkpoints(tree: CheckpointTree) -> Iterator[FoundCheckpoint]:
    taken: set[str] = set()
    for directory, names in _directories(tree).items():
        form = "" if directory in taken else _format_of(directory, names)
        if form or directory in taken:
            taken |= {directory, *names, *(posixpath.dirname(name) for name in names)}
        if form:
            yield FoundCheckpoint(directory, form, tuple(names), tree.modified_ms(names))
    bundles: dict[str, list[str]] = {}
    for name in tree.entries:
        if name in taken:
            continue
        match = file_validation.DATA.fullmatch(name)
        if match or name.endswith(".index"):
            bundles.setdefault(match[1] if match else name[: -len(".index")], []).append(name)
        elif name.endswith(_FILES):
            form = "torch" if name.endswith(_TORCH) else "file"
            yield FoundCheckpoint(name, form, (name,), tree.modified_ms([name]))
    for prefix, names in bundles.items():
        yield FoundCheckpoint(prefix, "tensorflow", tuple(names), tree.modified_ms(names))


def _format_of(directory: str, names: Iterable[str]) -> str:
    """Return the format of a directory that is one checkpoint as a whole; "" for any other directory."""
    own = {posixpath.basename(name) for name in names if posixpath.dirname(name) == directory}
    if ".metadata" in own or any(name.endswith(".distcp") for name in own):
        return "torch-sharded"
    if "saved_model.pb" in own:
        return "tensorflow-model"
    if not directory:
        return ""
    if any(map(_DEEPSPEED.fullmatch, own)):
        return "torch-deepspeed"
    if own & _HUGGING_FACE:
        return "torch-transformers"
    if "_CHECKPOINT_METADATA" in own:
        return "orbax"
    return "marked" if own & set(MARKERS) else ""


def is_part_of(checkpoint: FoundCheckpoint, name: str) -> bool:
    """Return whether a file in a checkpoint's directory is a part of it. Where the format does not tell, any is; where
    the directory may be that of all checkpoints, others may lie there, too."""
    parts = _PARTS.get(checkpoint.format)
    return parts is None or bool(parts.fullmatch(posixpath.relpath(name, checkpoint.name or ".")))


def find_defect(tree: CheckpointTree, checkpoint: FoundCheckpoint, rule: str = "") -> str:
    """Return the defect of a checkpoint; "" for a whole checkpoint."""
    if tree.is_torn(checkpoint):
        return "its files are of two moments: another checkpoint was written in its place, and that broke off"
    if checkpoint.format == "tensorflow":
        return _bundle_defect(tree, checkpoint.name)
    if checkpoint.format == "marker":
        marker = rule.partition(":")[2]
        marked = {checkpoint.name + marker, posixpath.join(checkpoint.name, marker)} & set(tree.entries)
        return "" if marked else f"it has no {marker}"
    if checkpoint.format == "torch-sharded":
        return _sharded_defect(tree, checkpoint)
    if checkpoint.format in ("torch", "file"):
        found = tree.find_defect(checkpoint.name)
        return "its format does not tell whether it is whole: see checkpoint.valid" if found is None else found
    if checkpoint.format == "torch-deepspeed" and (problem := _deepspeed_defect(tree, checkpoint)):
        return problem
    if checkpoint.format == "torch-transformers" and (problem := _transformers_defect(tree, checkpoint)):
        return problem
    return _parts_defect(tree, checkpoint) if checkpoint.format.startswith(("torch-", "tensorflow-")) else ""


def _bundle_defect(tree: CheckpointTree, prefix: str) -> str:
    index = prefix + ".index"
    if index not in tree.entries:
        return "its index is missing"
    with tree.fs.open_read(tree.entries[index].uri) as file:
        return file_validation.bundle_defect(file, tree.sizes[index], prefix, tree.sizes)


def _sharded_defect(tree: CheckpointTree, checkpoint: FoundCheckpoint) -> str:
    """Check a checkpoint of torch.distributed.checkpoint, which writes .metadata, with the names of all files, last."""
    metadata = posixpath.join(checkpoint.name, ".metadata")
    if metadata not in tree.entries:
        return "its .metadata, which is written last, is missing"
    if problem := tree.find_defect(metadata):
        return f".metadata: {problem}"
    named = {found.decode() for found in _SHARD.findall(tree.read(metadata, file_validation.INDEX_LIMIT))}
    lacking = sorted(name for name in named if not tree.sizes.get(posixpath.join(checkpoint.name, name)))
    return f"{lacking[0]} is missing" if lacking else ""


def _deepspeed_defect(tree: CheckpointTree, checkpoint: FoundCheckpoint) -> str:
    """Check that `latest` names a checkpoint of DeepSpeed, which it does when all ranks have written their files."""
    latest = posixpath.join(posixpath.dirname(checkpoint.name), "latest")
    if latest not in tree.entries:
        return "no `latest` names it"
    if tree.read(latest).decode("utf-8", "replace").strip() == posixpath.basename(checkpoint.name):
        return ""
    return "" if tree.modified_ms([latest]) >= checkpoint.modified_ms else "`latest` does not name it yet"


def _transformers_defect(tree: CheckpointTree, checkpoint: FoundCheckpoint) -> str:
    """Check a checkpoint of Transformers' Trainer, which writes trainer_state.json last; an index names the weights."""
    state = posixpath.join(checkpoint.name, "trainer_state.json")
    if re.fullmatch(r"checkpoint-\d+", posixpath.basename(checkpoint.name)) and state not in tree.entries:
        return "its trainer_state.json, which is written last, is missing"
    for index in (name for name in checkpoint.files if name.endswith((".safetensors.index.json", ".bin.index.json"))):
        try:
            shards = set(json.loads(tree.read(index, file_validation.INDEX_LIMIT))["weight_map"].values())
        except (ValueError, TypeError, KeyError, AttributeError):
            return f"{posixpath.basename(index)} can't be read"
        lacking = sorted(name for name in shards if posixpath.join(checkpoint.name, name) not in tree.entries)
        if lacking:
            return f"{lacking[0]} is missing"
    return ""


def _parts_defect(tree: CheckpointTree, checkpoint: FoundCheckpoint) -> str:
    for name in checkpoint.files:
        if name.endswith(".index") and name[: -len(".index")] + ".data-00000-of-00001" in tree.sizes:
            problem = _bundle_defect(tree, name[: -len(".index")])
        else:
            problem = tree.find_defect(name) or "" if file_validation.has_known_format(name) else ""
        if problem:
            return f"{posixpath.relpath(name, checkpoint.name or '.')}: {problem}"
    return next((f"{name}: {reason}" for name, reason in file_validation.find_orphans(checkpoint.files)), "")


@dataclass(frozen=True)
class FindCheckpointRequest:
    """Find the newest checkpoint that is whole."""

    directory: str
    """URI of the directory of checkpoints."""
    valid: str = ""
    """The job's rule for valid checkpoints (`checkpoint.valid`)."""


@dataclass(frozen=True)
class FindCheckpointReply(HelperReply):
    """The checkpoint that was found."""

    uri: str = ""
    """URI of the checkpoint; "" when there is none."""
    format: str = ""
    """Format of the checkpoint."""
    skipped: tuple[str, ...] = ()
    """A sentence for each newer checkpoint that is incomplete."""


def find_checkpoint(request: FindCheckpointRequest) -> FindCheckpointReply:
    """Find the newest whole checkpoint for a master."""
    found = find(filesystem(request.directory), request.directory, request.valid)
    if found.checkpoint is None:
        return FindCheckpointReply(skipped=found.skipped)
    uri = uris.join(request.directory, found.checkpoint.name)
    return FindCheckpointReply(uri=uri, format=found.checkpoint.format, skipped=found.skipped)


if __name__ == "__main__":
    run_helper_main({"find": find_checkpoint})
