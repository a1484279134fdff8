"""The settings, each with its source.

The order of sources, strongest first: flag, environment, the user's file (its profile, then its top), the cluster's
file (likewise), a running sandbox, the default. The cluster's file is `howdah.yaml` in the Hadoop configuration
directory in use, then /etc/howdah/config.yaml. A profile is chosen by --profile, HOWDAH_PROFILE, or `profile:` in a
file.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from howdah.config.engine_settings import engine_names, find_engine, settings_of_engines
from howdah.config.paths import running_sandbox
from howdah.config.user_file import user_file
from howdah.config.yaml_tree import Items, Keys, Node, Text, parse
from howdah.errors import Mistake, SpecError, StagingError
from howdah.localfiles.container_tools import TOOLS
from howdah.localfiles.own_directories import state_directory
from howdah.spec.setting import Setting, checked
from howdah.spec.validation import nearest
from howdah.spec.values import dataclass

SYSTEM_FILE = Path("/etc/howdah/config.yaml")


HISTORY_URL = "history_url"
"""This setting reaches jobs without its token, because other users may see the settings of a job."""
SANDBOX = "the running sandbox"
"""The source of settings that come from a running sandbox, because neither the user nor the environment sets them."""
SETTINGS = {
    "engine": Setting("local", "Where jobs run: an installed engine, such as local, yarn, slurm, kubernetes or ssh."),
    "hadoop_conf_dir": Setting("", "Directory with core-site.xml and yarn-site.xml; else HADOOP_CONF_DIR.", "path"),
    "queue": Setting("", "Queue of jobs that name none; empty: the cluster's default."),
    "staging_dir": Setting("", "URI below which jobs and cached files are kept on the cluster."),
    "python": Setting("", "Interpreter on the nodes, by path or name; empty: the engine's choice."),
    "python_archive": Setting("", "Standalone Python or conda-pack archive for nodes that have none.", "path"),
    "environment": Setting("", "For jobs that name none: an interpreter, an archive, or a requirements file.", "path"),
    "container_tool": Setting("", "What runs images where the engine does not; empty: what is there.", choices=TOOLS),
    "shared_paths": Setting("", "Path prefixes that the nodes see too, separated by commas: not uploaded.", "paths"),
    "master_memory_mib": Setting("", "Memory of the master's container; empty: the engine's choice.", "memory"),
    "master_vcores": Setting("1", "Cores of the master's container.", "whole"),
    "cache_days": Setting("30", "Uploaded files unused for this long, a day at least, are removed.", "whole"),
    "data_cache_mib": Setting("51200", "Input files of a user's that a node keeps, in all; 0: none.", "memory"),
    "data_cache_dir": Setting("", "Where nodes keep them; empty: beside the cluster's own files of the user."),
    "log_limit_mib": Setting("1024", "Most that is kept of each of a task's streams.", "memory"),
    "port_range": Setting("", "Ports of tasks and masters, such as 20000-30000; empty: the system chooses.", "ports"),
    HISTORY_URL: Setting("", "Link of a history server, for `howdah list --history`; it holds a token."),
    "prices": Setting("", "What an hour costs in the history: gpu, gpu:MODEL, cpu, memory, and currency.", "prices"),
    "language": Setting("auto", "Language of help and tables.", choices=("auto", "en", "zh")),
}


@dataclass(frozen=True)
class Settings:
    """All settings."""

    values: Mapping[str, str]
    """The value of every setting, as text. The names of an engine's own settings begin with its name:
    `slurm.account`."""
    sources: Mapping[str, str]
    """The source of every setting, such as `user file ~/.config/howdah/config.yaml, profile prod`."""
    profile: str = ""
    """The profile in use."""
    profiles: tuple[str, ...] = ()
    """All profiles of the files that were read."""

    def __getitem__(self, key: str) -> str:
        return self.values[key]

    def explain(self, key: str) -> str:
        """Return a setting with its source: `queue = prod (flag)`."""
        return f"{key} = {self.values[key]} ({self.sources[key]})"

    @property
    def shared_paths(self) -> tuple[str, ...]:
        """Return the prefixes of shared paths."""
        return tuple(path for path in self.values["shared_paths"].split(",") if path)


@dataclass(frozen=True)
class _Layer:
    """The settings of one source: a file, a profile in a file, the flags, the environment."""

    source: str
    values: Mapping[str, str]
    base: Path
    """The directory at which relative paths in the values start."""
    empties: bool = False
    """Whether an empty value restores the default. That is so in files; an empty flag or variable counts as not
    given."""

    def gives(self, key: str) -> bool:
        """Return whether the source has the setting."""
        return key in self.values if self.empties else bool(self.values.get(key))


def resolve(
    flags: Mapping[str, str | None], env: Mapping[str, str], engines: Iterable[str] = (), own: str | None = None
) -> Settings:
    """Return all settings. `flags` are settings (and `profile`) from the command line; None and "" mean not given.
    `own` is a text that is read in place of the user's file, which is to get it.

    The result includes the own settings of howdah's engines, of the chosen engine, of the engines in the files, and of
    `engines`.

    Raises:
        SpecError: an unknown key or profile, or a value that a setting can't have; names the file or variable.
    """
    given = {key: value for key, value in flags.items() if value}
    top = [_Layer("flag", {key: value for key, value in given.items() if key != "profile"}, Path.cwd())]
    top.append(_variables(SETTINGS, env))
    wanted = given.get("profile") or env.get("HOWDAH_PROFILE", "")
    files = [_read(user_file(env), "user file", own)]
    conf_dir = _first_value("hadoop_conf_dir", [*top, *_file_layers(files, wanted), *_hadoop_variable(env)])
    conf_files = [Path(conf_dir, "howdah.yaml")] if conf_dir else []
    files += [_read(path, "cluster file") for path in (*conf_files, SYSTEM_FILE)]
    profile = _existing_profile(wanted, files, "--profile" if given.get("profile") else "environment HOWDAH_PROFILE")
    layers = [*top, *_file_layers(files, profile), *_environment_layers(env)]
    in_files = (key.partition(".")[0] for layer in layers for key in layer.values if "." in key)
    of_engines = settings_of_engines(
        (*engines, *in_files, _first_value("engine", layers) or SETTINGS["engine"].default)
    )
    known = {**SETTINGS, **of_engines}
    names = tuple(sorted({name for file in files for name in file.profiles}))
    return _merge_layers([layers[0], _variables(known, env), *layers[2:]], known, profile, names)


def find_setting(key: str) -> Setting | None:
    """Return the setting of this name; None if neither howdah nor an installed engine has it."""
    engine, dot, name = key.partition(".")
    declared = find_engine(engine) if dot else None
    return declared.settings.get(name) if declared is not None else SETTINGS.get(key)


def variable_of(key: str) -> str:
    """Return the environment variable of a setting: HOWDAH_SLURM_ACCOUNT of `slurm.account`."""
    return "HOWDAH_" + key.upper().replace(".", "_").replace("-", "_")


def unknown_setting(key: str, place: str = "", origin: str | None = None) -> Mistake:
    """Return the mistake of a key that is not a setting. `place` is the key's place, if it differs from the key
    itself."""
    engine = key.partition(".")[0]
    declared = find_engine(engine)
    if declared is None:
        known = [*SETTINGS, *settings_of_engines(engine_names())]
        hint = nearest(key, known)
        problem = "is not a setting" if hint else "is not a setting; `howdah config` lists all"
    else:
        known = [f"{engine}.{name}" for name in declared.settings]
        own = f"its settings are {', '.join(known)}" if known else "which has no settings of its own"
        problem = f"is not a setting of the engine {engine}, {own}"
    return Mistake(place or key, problem, nearest(key, known), origin)


def _variables(known: Iterable[str], env: Mapping[str, str]) -> _Layer:
    """Return the settings in the environment. Other HOWDAH_ variables have other uses, so unknown ones are no
    mistakes."""
    return _Layer("environment", {key: env[variable_of(key)] for key in known if env.get(variable_of(key))}, Path.cwd())


def check_value(key: str, value: str, source: str, base: Path) -> str:
    """Return `value` in the form that settings have.

    Raises:
        SpecError: there is no such key, or it can't have this value.
    """
    setting = find_setting(key)
    if setting is None:
        raise SpecError([unknown_setting(key, origin=source)])
    return str(checked(key, setting, value, base, source))


def _merge_layers(
    layers: list[_Layer], known: Mapping[str, Setting], profile: str, profiles: tuple[str, ...]
) -> Settings:
    values = {key: setting.default for key, setting in known.items()}
    sources = dict.fromkeys(known, "default")
    mistakes: list[Mistake] = []
    for key in known:
        layer = next((layer for layer in layers if layer.gives(key)), None)
        if layer is not None:
            sources[key] = _source(layer.source, key)
            try:
                values[key] = check_value(key, layer.values[key], sources[key], layer.base) or values[key]
            except SpecError as error:
                mistakes += error.mistakes
    if mistakes:
        raise SpecError(mistakes)
    return Settings(values, sources, profile, profiles)


def _source(layer: str, key: str) -> str:
    return f"environment {variable_of(key)}" if layer == "environment" else layer


def _hadoop_variable(env: Mapping[str, str]) -> Iterator[_Layer]:
    if env.get("HADOOP_CONF_DIR"):
        yield _Layer("environment HADOOP_CONF_DIR", {"hadoop_conf_dir": env["HADOOP_CONF_DIR"]}, Path.cwd())


def _environment_layers(env: Mapping[str, str]) -> Iterator[_Layer]:
    """Yield the layers that are configured outside howdah: Hadoop's variable and a running sandbox."""
    yield from _hadoop_variable(env)
    conf_dir = _sandbox(env)
    if conf_dir:
        # The sandbox's nodes are this machine: they have every path, and the Python of this process.
        shared = {"shared_paths": "/", "python": os.path.realpath(sys.executable)}
        values = {"hadoop_conf_dir": conf_dir} | ({} if env.get("HADOOP_CONF_DIR") else shared)
        yield _Layer(SANDBOX, values, Path("/"))
    for record in sorted(state_directory(env).glob("sandbox-*/sandbox.json")):
        of_engine = running_sandbox(record).get("settings")
        if isinstance(of_engine, dict):
            yield _Layer(SANDBOX, of_engine, Path("/"))


def _sandbox(env: Mapping[str, str]) -> str:
    """Return the configuration directory of the running Hadoop sandbox; "" if none runs."""
    return str(running_sandbox(state_directory(env) / "sandbox" / "sandbox.json").get("conf_dir", ""))


@dataclass(frozen=True)
class _File:
    name: str
    path: Path
    top: Mapping[str, str]
    profiles: Mapping[str, Mapping[str, str]]
    profile: str = ""


def _read(path: Path, kind: str, text: str | None = None) -> _File:
    """Read the settings file at `path`, or `text` in place of its content; the result is empty if there is no file."""
    name = f"{kind} {_abbreviate_home(path)}"
    try:
        text = path.read_text(encoding="utf-8") if text is None else text
    except FileNotFoundError:
        return _File(name, path, {}, {})
    except (OSError, UnicodeDecodeError) as error:
        raise StagingError(f"{name} can't be read: {error}") from error
    root, mistakes = parse(text, str(path))
    if not isinstance(root, Keys):
        raise SpecError.at(str(path), "must be a mapping of settings to values")
    top = {key: node for key, node in root.entries.items() if key not in ("profile", "profiles")}
    values = _setting_texts(top, "", mistakes)
    profiles = _profiles(root.entries.get("profiles"), mistakes)
    chosen = _setting_texts({key: node for key, node in root.entries.items() if key == "profile"}, "", mistakes)
    if mistakes:
        raise SpecError(mistakes)
    return _File(name, path, values, profiles, chosen.get("profile", ""))


def _profiles(node: Node | None, mistakes: list[Mistake]) -> dict[str, dict[str, str]]:
    entries = node.entries if isinstance(node, Keys) else {}
    if node is not None and not isinstance(node, Keys):
        mistakes.append(Mistake("profiles", "must be a mapping of names to settings", origin=node.origin))
    found = {}
    for name, profile in entries.items():
        if isinstance(profile, Keys):
            found[name] = _setting_texts(profile.entries, f"profiles.{name}.", mistakes)
        else:
            mistakes.append(Mistake(f"profiles.{name}", "must be a mapping of settings", origin=profile.origin))
    return found


def _setting_texts(entries: Mapping[str, Node], place: str, mistakes: list[Mistake]) -> dict[str, str]:
    values: dict[str, str] = {}
    origins: dict[str, str] = {}
    for key, node in setting_nodes(entries):
        setting = SETTINGS["engine"] if key == "profile" and not place else find_setting(key)
        if setting is None:
            mistakes.append(unknown_setting(key, place + key, node.origin))
        elif key in origins:
            mistakes.append(Mistake(place + key, f"is there twice, first at {origins[key]}", origin=node.origin))
        elif isinstance(node, Text):
            values |= {} if node.null else {key: node.value}  # a key without a value says nothing
        elif isinstance(node, Items) and setting.kind in ("paths", "list", "prices"):
            texts = [item.value for item in node.items if isinstance(item, Text)]
            if any("," in text for text in texts):
                mistakes.append(Mistake(place + key, "has a comma, which separates values", origin=node.origin))
            values[key] = ",".join(texts)
        else:
            mistakes.append(Mistake(place + key, "must be a single value", origin=node.origin))
        origins.setdefault(key, node.origin)
    return values


def setting_nodes(entries: Mapping[str, Node]) -> Iterator[tuple[str, Node]]:
    """Yield the key and the value of each setting in a mapping of a file. The settings of an engine may be in a mapping
    under its name: `slurm: {account: a}` means `slurm.account: a`."""
    for key, node in entries.items():
        if isinstance(node, Keys) and key not in SETTINGS:
            yield from ((f"{key}.{name}", inner) for name, inner in node.entries.items())
        else:
            yield key, node


def _file_layers(files: list[_File], profile: str) -> Iterator[_Layer]:
    """Yield the layers of `files`, strongest first."""
    for file in files:
        chosen = profile or file.profile
        if chosen in file.profiles:
            yield _Layer(f"{file.name}, profile {chosen}", file.profiles[chosen], file.path.parent, empties=True)
        yield _Layer(file.name, file.top, file.path.parent, empties=True)


def _existing_profile(wanted: str, files: list[_File], origin: str) -> str:
    """Return the profile in use. `origin` names the source that has chosen `wanted`, if that is not ""."""
    choosing = next((file for file in files if file.profile), None)
    chosen = wanted or (choosing.profile if choosing else "")
    known = sorted({name for file in files for name in file.profiles})
    if chosen and chosen not in known:
        what = f"known are {', '.join(known)}" if known else f"no profiles are in {_abbreviate_home(files[0].path)}"
        origin = choosing.name if choosing and not wanted else origin
        raise SpecError([Mistake("profile", f"is {chosen!r}, {what}", nearest(chosen, known), origin)])
    return chosen


def _first_value(key: str, layers: list[_Layer]) -> str:
    found = next((layer for layer in layers if layer.gives(key)), None)
    return check_value(key, found.values[key], _source(found.source, key), found.base) if found else ""


def _abbreviate_home(path: Path) -> str:
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)
