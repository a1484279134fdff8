"""Reads the values of single options: resources, localisation, quicklinks, variables."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection

from howdah.compat.submarine.options import PAGE, SubmarineOptions
from howdah.spec import Resources, uris
from howdah.spec.validation import nearest
from howdah.spec.values import dataclass

_AMOUNT = re.compile(r"([^=]+)=([0-9]{1,18})\s?([mMgG]?)")
_FIELDS = {"memory": "memory", "memory-mb": "memory", "vcores": "vcores", "cpu": "vcores"}
_FIELDS |= {"gpu": "gpus", "yarn.io/gpu": "gpus"}
_BESIDE = re.compile(r"\./?|\./[^/]+|/.*")
_LINK = re.compile(r"([^=]+)=(https?://)([a-z]+-[0-9]+):([0-9]{1,5})((?:[/?#].*)?)")
_MIN_WITHOUT_UNIT = 128
"""The least value in MiB without a unit: a user who writes `memory=4` means 4 GiB, because no such program runs in 4
MiB."""


def resources(options: SubmarineOptions, name: str, default: str = "") -> Resources:
    """Read resources such as `memory=4G,vcores=2,gpu=1`. Memory without a unit meant bytes, and means MiB here unless
    --legacy is given."""
    found, named = {"memory": 1024, "vcores": 1, "gpus": 0}, {}
    typed: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in options.text(name, default).split(","))):
        match = _AMOUNT.fullmatch(part)
        if not match:
            rule = "must be key=amount with a whole number, like memory=1536M, memory=4G, vcores=2, gpu=1"
            options.wrong(name, f"has {part!r}, {rule} (the units are M and G)")
            continue
        key, amount, unit = match[1].strip(), int(match[2]), match[3].upper()
        what = _FIELDS.get(key, "yarn.io/fpga" if key == "fpga" else key)
        if what in typed:
            options.wrong(name, f"has {typed[what]!r} and {part!r}: keep one of them")
            continue
        typed[what] = part
        if what == "memory":
            found[what] = amount * (1024 if unit == "G" else 1)
            if key == "memory" and not unit:
                found[what] = _without_unit(options, name, amount)
        elif unit:
            options.wrong(name, f"has {part!r}, but only memory has a unit")
        elif what in found:
            found[what] = amount
        else:
            named[what] = amount
    return Resources(found["memory"], found["vcores"], found["gpus"], named)


def _without_unit(options: SubmarineOptions, name: str, amount: int) -> int:
    if options.given("legacy"):
        return amount >> 20
    if 0 < amount < _MIN_WITHOUT_UNIT:
        options.wrong(name, f"has 'memory={amount}', which would be {amount} MiB: write memory={amount}G or {amount}M")
    else:
        options.notes.append(f"{options.where(name)}: memory={amount} is taken as {amount}M; to Submarine it was bytes")
    return amount


@dataclass(frozen=True)
class Local:
    """One file or directory that `--localization` asks for."""

    remote: str
    """A path on this machine, or a URI."""
    name: str
    """The name in the working directory."""
    mount: str = ""
    """The path in a container at which it is mounted, too."""

    @property
    def entry(self) -> str:
        """Return the entry of a job's `files`."""
        return f"{self.remote}#{self.name}"

    @property
    def as_mount(self) -> str:
        """Return the entry of an image's `mounts`."""
        return f"{self.name}:{self.mount}:rw"


def read_localization(options: SubmarineOptions, option: str, text: str) -> Local | None:
    """Read `REMOTE:LOCAL[:rw]`. The last colon separates, so that REMOTE may have a port and any scheme."""
    rest, _, mode = text.rpartition(":")
    if mode not in ("rw", "wr", "ro"):
        rest, mode = text, "rw"
    remote, _, local = rest.rpartition(":")
    if not remote or not _BESIDE.fullmatch(local) or local.startswith("//"):
        options.wrong(option, f"is {text!r}, must be REMOTE:LOCAL[:rw], where LOCAL is ., ./name or an absolute path")
    elif mode == "ro":
        options.wrong(option, f"is {text!r}, but there is only rw: each task has a copy of its own")
    else:
        remote = uris.path(remote) if uris.has_scheme(remote) and uris.split(remote)[0] == "file" else remote
        name = posixpath.basename((remote if local in (".", "./") else local).rstrip("/"))
        return Local(remote.rstrip("/"), name, local if local.startswith("/") else "")
    return None


def quicklink(options: SubmarineOptions, text: str, tasks: Collection[str]) -> tuple[str, str]:
    """Read `Label=http://master-0:8080` as label and address; `tasks` are all `role:index`."""
    match = _LINK.fullmatch(text)
    if match is None or not 0 < int(match[4]) < 1 << 16:
        rule = "must be LABEL=http(s)://INSTANCE:PORT, as in Page=http://master-0:8080"
        options.wrong("quicklink", f"is {text!r}, {rule}")
        return "", ""
    label, scheme, instance, port, path = match.groups()
    task = instance.replace("-", ":")
    if task not in tasks:
        known = [name.replace(":", "-") for name in tasks]
        wrong = f"is {text!r}, but there is no component instance {instance}; there are {', '.join(known[:8])}"
        options.wrong("quicklink", wrong, nearest(instance, known))
        return "", ""
    return label, f"{scheme}{{{task}}}:{port}{path}"


def variables(options: SubmarineOptions, option: str) -> dict[str, str]:
    """Read variables `K=V`. Several values of one name are joined by colons, as in PATH."""
    found: dict[str, str] = {}
    for text in options.get_list(option):
        name, equals, value = text.partition("=")
        if not equals:
            options.notes.append(f"{options.where(option)}: {name} is set to nothing, for it has no '=' ({PAGE})")
        found[name] = f"{found[name]}:{value}" if name in found else value
    return found
