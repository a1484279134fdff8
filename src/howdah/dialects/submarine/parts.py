"""The small languages of single options: resources, localisation, quicklinks, variables."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection
from dataclasses import dataclass

from howdah.data import uris
from howdah.dialects.submarine.options import PAGE, Options
from howdah.spec import Resources
from howdah.spec.check import nearest

_AMOUNT = re.compile(r"([^=]+)=([0-9]{1,18})\s?([mMgG]?)")
_MEMORY, _CORES, _GPUS = ("memory", "memory-mb"), ("vcores", "cpu"), ("gpu", "yarn.io/gpu")
_BESIDE = re.compile(r"\./?|\./[^/]+|/.*")
_LINK = re.compile(r"([^=]+)=(https?://)([a-z]+-[0-9]+)(:.*)")


def resources(options: Options, name: str, default: str = "") -> Resources:
    """`memory=4G,vcores=2,gpu=1`. Memory without a unit was bytes, and is MiB here unless --legacy."""
    found, named, amounts = {"memory": 1024, "vcores": 1, "gpus": 0}, {}, options.text(name, default)
    for part in filter(None, (part.strip() for part in amounts.split(","))):
        match = _AMOUNT.fullmatch(part)
        if not match:
            options.wrong(name, f"has {part!r}, must be key=amount like memory=4G, vcores=2, gpu=1 (units are M and G)")
            continue
        key, amount, unit = match[1].strip(), int(match[2]), match[3].upper()
        if key in _MEMORY:
            found["memory"] = amount * (1024 if unit == "G" else 1)
            if key == "memory" and not unit:
                found["memory"] = _without_unit(options, name, amount)
        elif unit:
            options.wrong(name, f"has {part!r}, but only memory has a unit")
        elif key in _CORES or key in _GPUS:
            found["vcores" if key in _CORES else "gpus"] = amount
        else:
            named["yarn.io/fpga" if key == "fpga" else key] = amount
    return Resources(found["memory"], found["vcores"], found["gpus"], named)


def _without_unit(options: Options, name: str, amount: int) -> int:
    if options.given("legacy"):
        return amount >> 20
    options.notes.append(f"{options.where(name)}: memory={amount} is taken as {amount}M; to Submarine it was bytes")
    return amount


@dataclass(frozen=True)
class Local:
    """`name` in the working directory; `mount` is where a container wants to see it besides."""

    remote: str
    name: str
    mount: str = ""


def localised(options: Options, option: str, text: str) -> Local | None:
    """`REMOTE:LOCAL[:rw]`. What comes after the last colon is local, so that REMOTE may have a port and any scheme."""
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


def quicklink(options: Options, text: str, tasks: Collection[str]) -> tuple[str, str]:
    """`Label=http://master-0:8080` as label and address; `tasks` are all `role:index`."""
    match = _LINK.fullmatch(text)
    task = match[3].replace("-", ":") if match else ""
    if not match:
        options.wrong(
            "quicklink", f"is {text!r}, must be LABEL=http(s)://INSTANCE:PORT, as in Page=http://master-0:8080"
        )
    elif task not in tasks:
        known = [one.replace(":", "-") for one in tasks]
        wrong = f"is {text!r}, but there is no component instance {match[3]}; there are {', '.join(known[:8])}"
        options.wrong("quicklink", wrong, nearest(match[3], known))
    else:
        return match[1], f"{match[2]}{{{task}}}{match[4]}"
    return "", ""


def variables(options: Options, option: str) -> dict[str, str]:
    """`K=V`; of a name that comes again the values are joined, as the PATH-like ones want it."""
    found: dict[str, str] = {}
    for text in options.listed(option):
        name, equals, value = text.partition("=")
        if not equals:
            options.notes.append(f"{options.where(option)}: {name} is set to nothing, for it has no '=' ({PAGE})")
        found[name] = f"{found[name]}:{value}" if name in found else value
    return found
