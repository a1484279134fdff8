"""`howdah config`: every setting with where it came from, and the user's own file."""

from __future__ import annotations

import os
import re
from pathlib import Path

import click

from howdah.cli.terminal import columns, json_option, print_result
from howdah.client.engine_registry import engine_info, settings_for
from howdah.config.engine_settings import engine_names
from howdah.config.settings import HISTORY_URL, check_value, find_setting, unknown_setting
from howdah.config.settings_file import refuse_harm, remove, write
from howdah.config.user_file import user_file
from howdah.errors import SpecError
from howdah.spec.codec import to_json


@click.group(invoke_without_command=True)
@click.option("--profile", default="", help="A profile of your configuration.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_context
def config(context: click.Context, profile: str, as_json: bool) -> None:
    """Show every setting and where it came from; `get`, `set`, `unset` for one, `path` for the file."""
    if context.invoked_subcommand is None:
        _show_all(profile, as_json)
        return
    given = ({"profile": profile} if profile else {}) | ({"as_json": True} if as_json else {})
    context.default_map = {context.invoked_subcommand: given}  # options before the sub-command count as its own


def _show_all(profile: str, as_json: bool) -> None:
    settings = settings_for({"profile": profile}, engine_names())
    if as_json:
        both = {
            key: {"value": shown(key, value), "source": settings.sources[key]} for key, value in settings.values.items()
        }
        click.echo(to_json(both))
        return
    rows: list[tuple[str, ...]] = [
        (key, shown(key, value) or "-", settings.sources[key]) for key, value in settings.values.items()
    ]
    for line in columns(rows):
        click.echo(line)


def shown(key: str, value: str) -> str:
    """Return the value without the token of a link; `get` prints the token, too."""
    return re.sub(r"[?#].*", "#…", value) if key == HISTORY_URL else value


@config.command("list")
@click.option("--profile", default="", help="A profile of your configuration.")
@json_option
def list_(profile: str, as_json: bool) -> None:
    """Show every setting and where it came from, as `howdah config` does."""
    _show_all(profile, as_json)


@config.command()
@click.argument("key")
@click.option("--profile", default="", help="A profile of your configuration.")
@json_option
def get(key: str, profile: str, as_json: bool) -> None:
    """Print the value of KEY."""
    if find_setting(key) is None:
        raise SpecError([unknown_setting(key)])
    found = settings_for({"profile": profile}, [key.partition(".")[0]])
    print_result(found[key], {"key": key, "value": found[key], "source": found.sources[key]}, as_json)


@config.command("set")
@click.argument("key")
@click.argument("value")
@click.option("--profile", default="", help="Set KEY in this profile.")
@json_option
def set_(key: str, value: str, profile: str, as_json: bool) -> None:
    """Set KEY to VALUE in your own file."""
    path = user_file(os.environ)
    setting = find_setting(key)
    if setting is not None and setting.kind in ("path", "paths"):
        value = check_value(key, value, "howdah config set", Path.cwd())  # not relative to the settings' file
    if key == "engine" and value:
        engine_info(value)
    write(path, key, value, profile, refuse_harm(key, profile, os.environ))
    print_result(str(path), {"path": str(path)}, as_json)


@config.command()
@click.argument("key")
@click.option("--profile", default="", help="Remove KEY from this profile.")
@json_option
def unset(key: str, profile: str, as_json: bool) -> None:
    """Remove KEY from your own file."""
    path = user_file(os.environ)
    if find_setting(key) is None and key != "profile":
        raise SpecError([unknown_setting(key)])
    remove(path, key, profile, refuse_harm(key, profile, os.environ))
    print_result(str(path), {"path": str(path)}, as_json)


@config.command()
@json_option
def path(as_json: bool) -> None:
    """Print where your own file is."""
    place = str(user_file(os.environ))
    print_result(place, {"path": place}, as_json)
