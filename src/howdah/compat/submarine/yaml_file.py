"""Reads the file of `job run -f`: its keys, in snake_case or camelCase, are the options under other names.

It is a mistake if the file and the command line set the same option.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from howdah.compat.submarine.options import FLAGS, OF_ROLE, ROLES, SubmarineOptions
from howdah.config.yaml_tree import MAX_BYTES, Items, Keys, Node, Text, parse
from howdah.errors import Mistake, SpecError, StagingError
from howdah.localfiles import regular_file
from howdah.spec.validation import nearest

_LISTS = {"envs": "env", "localizations": "localization", "quicklinks": "quicklink", "mounts": "mount"}
_CONFIGS = ("input_path", "checkpoint_path", "saved_model_path", "docker_image", "wait_job_finish")
_ROLE = {"envs": "env", "localizations": "localization", "mounts": "mount"}
_REQUIRED = ("spec", "configs", "roles")
# The option of each key, by section; "" for a key without an effect here.
SECTIONS: Mapping[str, Mapping[str, str]] = {
    "spec": {"name": "name", "framework": "framework", "job_type": ""},
    "configs": {**{name: name for name in _CONFIGS}, **_LISTS},
    "scheduling": {"queue": "queue"},
    "security": {name: name for name in ("keytab", "principal", "distribute_keytab")},
    "tensor_board": {"resources": "tensorboard_resources", "docker_image": "tensorboard_docker_image"},
}


def add(options: SubmarineOptions, directory: Path) -> None:
    """Read the file of `-f` into `options`.

    Raises:
        SpecError: the file has the wrong form.
        StagingError: the file cannot be read.
    """
    name = options.text("f")
    try:
        text = regular_file.read(directory / name, MAX_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SpecError.at(f"-f {name}", f"is not UTF-8: byte {error.start}") from None
    except OSError as error:
        raise StagingError(f"-f {name}: {error.strerror}") from error
    root, mistakes = parse(text, Path(name).name)
    options.mistakes += mistakes
    if (isinstance(root, Text) and root.null) or (isinstance(root, Keys) and not root.entries):
        raise SpecError.at(f"-f {name}", "is empty")
    _Reader(options).file(root)


def _snake_case(key: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key).lower()


class _Reader:
    """Reads keys in snake_case and adds their values to `options`."""

    def __init__(self, options: SubmarineOptions) -> None:
        self.options = options
        self._typed = set(options.values)

    def file(self, root: Node) -> None:
        found = {_snake_case(key) for key in root.entries} if isinstance(root, Keys) else {*_REQUIRED}
        for name in (name for name in _REQUIRED if name not in found):
            self._add_mistake(root, "the file", f"has no section {name!r}, must have {', '.join(_REQUIRED)}")
        for section, node, place in self._entries(root, "the file", (*SECTIONS, "roles")):
            if section == "roles":
                for role, below, where in self._entries(node, place, tuple(ROLES)):
                    self._role(role, below, where)
                continue
            if section == "tensor_board":
                self._set("tensorboard", place, node, [])
            known = SECTIONS[section]
            for key, value, where in self._entries(node, place, tuple(known)):
                self._value(known[key], value, where)

    def _role(self, role: str, node: Node, place: str) -> None:
        options = {"replicas": ROLES[role], **{what: f"{role}_{what}" for what in OF_ROLE}}
        options |= {key: f"{role}.{option}" for key, option in _ROLE.items()}
        for key, value, where in self._entries(node, place, tuple(options)):
            self._value(options[key], value, where)

    def _value(self, option: str, node: Node, place: str) -> None:
        if not option or (isinstance(node, Text) and node.null):
            return
        if option.rpartition(".")[2] in _LISTS.values():
            self._set(option, place, node, list(self._list_texts(node, place, option.endswith("env"))))
        elif not isinstance(node, Text):
            self._add_mistake(node, place, "must be one value")
        elif option in FLAGS:
            if node.value.lower() not in ("true", "false"):
                self._add_mistake(node, place, f"is {node.value!r}, must be true or false")
            elif node.value.lower() == "true":
                self._set(option, place, node, [])
        else:
            self._set(option, place, node, [node.value])

    def _list_texts(self, node: Node, place: str, pairs: bool) -> Iterator[str]:
        """Yield the texts of a list, or `key=value` for each entry of a mapping if `pairs` is true."""
        if pairs and isinstance(node, Keys):
            entries = [(f"{key}=", value) for key, value in node.entries.items()]
        elif not pairs and isinstance(node, Items):
            entries = [("", value) for value in node.items]
        else:
            return self._add_mistake(node, place, "must be a mapping" if pairs else "must be a list")
        for before, value in entries:
            if isinstance(value, Text):
                yield before + value.value
            else:
                self._add_mistake(value, f"{place}.{before[:-1]}".rstrip("."), "must be one value")

    def _entries(self, node: Node, place: str, known: tuple[str, ...]) -> Iterator[tuple[str, Node, str]]:
        if isinstance(node, Text) and node.null:
            return
        if not isinstance(node, Keys):
            return self._add_mistake(node, place, f"must have the keys {', '.join(known)}")
        for key, value in node.entries.items():
            name = _snake_case(key)
            where = key if place == "the file" else f"{place}.{key}"
            if name in known or (name := f"{name[:6]}_{name[6:]}") in known:  # `tensorboard`
                yield name, value, where
            else:
                near = nearest(key, known)
                self._add_mistake(value, where, f"is not a key here, known are {', '.join(known)}", near)

    def _set(self, option: str, place: str, node: Node, values: list[str]) -> None:
        if option in self._typed:
            self._add_mistake(node, place, f"is given here, and by --{option} on the command line: keep one of them")
        else:
            self.options.values[option], self.options.places[option] = values, (place, node.origin)

    def _add_mistake(self, node: Node, place: str, problem: str, near: str | None = None) -> None:
        self.options.mistakes.append(Mistake(place, problem, near, node.origin))
