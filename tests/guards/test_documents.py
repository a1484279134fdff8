"""Tests documents: their links work, the paths that they name exist, and options, settings and keys are all in them."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import click
from source import ROOT, SOURCE, documents, text

from howdah.cli import COMMANDS
from howdah.compat.submarine.options import OPTIONS
from howdah.compat.xlearning.submit import OPTION_NAMES
from howdah.config.job_schema import schema
from howdah.config.settings import SETTINGS
from howdah.config.spec_reader import keys_of
from howdah.locale.stored_sentences import in_chinese
from howdah.master.program_api.metrics import FIRST_POINTS
from howdah.spec import (
    Board,
    Checkpoint,
    Deadline,
    Environment,
    Input,
    JobSpec,
    Master,
    Output,
    Placement,
    Preemption,
    Preflight,
    Resources,
    Role,
    Save,
    Timeouts,
)
from howdah.spec.advice import ADVICE

PACKAGE = SOURCE / "howdah"
# Paths of a job's directory, of this machine, and of what a build makes.
NOT_IN_THE_REPOSITORY = re.compile(r"tasks/|~|\$|\.venv/|frontend/generated/")
PATH = re.compile(r"[\w.*<>-]+/[\w./*<>-]*")


def anchors(path: Path) -> set[str]:
    """The names that a Markdown page gives its headings."""
    headings = re.findall(r"^#+ (.*)$", text(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def leads_somewhere(page: Path, link: str) -> bool:
    """Return whether a link of a page is to a file, and a heading, that exist; those to other sites are not tried."""
    target, _, anchor = link.partition("#")
    path = page.parent / target if target else page
    return "://" in target or (path.exists() and (not anchor or anchor in anchors(path)))


def test_links_lead_somewhere() -> None:
    broken = [
        f"{page.relative_to(ROOT)}: {link}"
        for page in documents()
        for link in re.findall(r"\]\(([^)\s]+)\)", text(page))
        if not leads_somewhere(page, link)
    ]
    assert broken == []


def named_paths(document: str) -> list[str]:
    """The paths in a document's code and in its references to `docs/adr`, as patterns."""
    prose = re.sub(r"^```.*?^```", "", text(ROOT / document), flags=re.MULTILINE | re.DOTALL)
    words = [word for code in re.findall(r"`([^`]+)`", prose) for word in code.split()]
    paths = [word for word in words if PATH.fullmatch(word) and not NOT_IN_THE_REPOSITORY.match(word)]
    paths += [f"{record}-*.md" for record in re.findall(r"\bdocs/adr/\d+", prose)]
    return sorted({re.sub("<[^>]*>", "*", path).rstrip("/") for path in paths})


def test_paths_that_papers_for_contributors_name_exist() -> None:
    for document in ("ARCHITECTURE.md", "CONTRIBUTING.md"):
        paths = named_paths(document)
        assert len(paths) > 20, document
        missing = [path for path in paths if not any(any(root.glob(path)) for root in (ROOT, PACKAGE))]
        assert missing == [], document


def names_in_first_column(table: str) -> set[str]:
    """The words in backquotes in the first column of a text's tables."""
    rows = re.findall(r"^\| (`[^|]*) \|", table, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row)}


def test_architecture_lists_every_package() -> None:
    names = names_in_first_column(text(ROOT / "ARCHITECTURE.md").partition("## Layers")[0])
    assert sorted(name for name in names if not (PACKAGE / name).exists()) == []
    modules = {path.name for path in PACKAGE.glob("*.py") if not path.name.startswith("__")}
    assert {init.parent.name for init in PACKAGE.glob("*/__init__.py")} | modules <= names


def test_readmes_of_packages_list_what_is_in_them() -> None:
    readmes = sorted(PACKAGE.rglob("README.md"))
    assert readmes
    for readme in readmes:
        names = names_in_first_column(text(readme))
        assert sorted(name for name in names if not (readme.parent / name).exists()) == [], readme
        packages = {f"{init.parent.name}/" for init in readme.parent.glob("*/__init__.py")} - {"proto/"}
        assert sorted(packages - names) == [], readme


def test_every_extra_is_listed_with_what_it_brings() -> None:
    optional = text(ROOT / "pyproject.toml").partition("[project.optional-dependencies]")[2]
    extras = re.findall(r"^(\w+) = \[([^\]]*)\]", optional.partition("[project.scripts]")[0], re.MULTILINE)
    listed = {
        name: [re.match(r"[\w.-]+", each)[0] for each in re.findall(r'"([^"]+)"', needs)] for name, needs in extras
    }  # type: ignore[index]
    for page, comma in (("install.md", ", "), ("install.zh-CN.md", "、")):
        rows = re.findall(r"^\| `(\w+)` \| ([^|]*) \|", text(ROOT / "docs" / page), re.M)
        assert {name: row.split(comma) for name, row in rows} == listed, page


def first_column(name: str) -> set[str]:
    """The words in backquotes in the first column of the tables of a page in `docs`."""
    return names_in_first_column(text(ROOT / "docs" / name))


def test_the_page_lists_every_setting() -> None:
    for page in ("configuration.md", "configuration.zh-CN.md"):
        assert first_column(page) == set(SETTINGS), page


def test_the_page_lists_every_key_of_a_job_file() -> None:
    kinds = (JobSpec, Role, Resources, Input, Output, Environment, Timeouts)
    more = (Board, Checkpoint, Deadline, Master, Placement, Preemption, Preflight, Save)
    keys = {key for kind in (*kinds, *more) for key in keys_of(kind)}
    for page in ("spec.md", "spec.zh-CN.md"):
        assert first_column(page) == keys | {"vars"}, page
        assert set(schema()["properties"]) <= first_column(page), page


def test_the_chinese_page_has_every_call_of_the_api_with_its_parameters() -> None:
    def names(page: str) -> list[list[str]]:
        # Of a row the first and the last column, of the meaning of a parameter what stands before the colon.
        parts = re.findall(r"^\| (`.*?) \|.*\|(.*)\|$|^- (`.*?)[:：] ?\S", text(ROOT / "docs" / page), re.MULTILINE)
        return [re.findall(r"`([^`]+)`", " ".join(part)) for part in parts]

    assert len(names("api.md")) > 100
    assert names("api.zh-CN.md") == names("api.md")


def options(command: click.Command) -> Iterator[str]:
    yield from (name for option in command.params if isinstance(option, click.Option) for name in option.opts)
    for name, below in command.commands.items() if isinstance(command, click.Group) else ():
        yield name
        yield from options(below)


def test_the_page_names_every_option_of_a_command() -> None:
    for name in ("commands.md", "commands.zh-CN.md"):
        page = text(ROOT / "docs" / name)
        missing = []
        for command, (target, _) in COMMANDS.items():
            module, _, attribute = target.partition(":")
            words = (command, *options(getattr(importlib.import_module(module), attribute)))
            missing += [
                f"{command} {word}" for word in words if not re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", page)
            ]
        assert missing == [], name


def test_the_page_lists_every_option_of_xlearning() -> None:
    for page in ("coming-from-xlearning.md", "coming-from-xlearning.zh-CN.md"):
        assert {f"--{option}" for option in OPTION_NAMES} <= first_column(page), page


def test_the_page_lists_every_option_of_submarine() -> None:
    known = {f"--{option}" for option in OPTIONS if option != "f"} | {"-f"}
    for page in ("coming-from-submarine.md", "coming-from-submarine.zh-CN.md"):
        assert known <= first_column(page), page


def test_each_remedy_is_explained_in_both_languages() -> None:
    for name, translate in (("troubleshooting.md", str), ("troubleshooting.zh-CN.md", in_chinese)):
        page = text(ROOT / "docs" / name)
        for cause, remedy in ADVICE.items():
            _, heading, entry = page.partition(f"\n### `{cause}`")
            assert heading, f"{name} has no entry for {cause}"
            assert f"\n> {translate(remedy)}\n" in entry.partition("\n### ")[0], f"{name}: {cause}"


def test_the_site_leads_to_every_page() -> None:
    listed = set(re.findall(r"[\w./-]+\.md", text(ROOT / "mkdocs.yml").partition("\nnav:")[2]))
    assert sorted(name for name in listed if not (ROOT / name).exists()) == []
    pages = {path.relative_to(ROOT).as_posix() for path in documents()}
    guides = {page for page in pages if re.fullmatch(r"docs/(tutorials/)?[\w-]+\.md", page)}
    assert sorted(guides - listed) == []


def test_the_readme_is_one_screen() -> None:
    for name in ("README.md", "README.zh-CN.md"):
        assert len(text(ROOT / name).splitlines()) <= 112, name


def test_how_many_points_a_metric_keeps_is_told_in_both_languages() -> None:
    for name in ("docs/here.md", "docs/here.zh-CN.md"):
        assert f" {FIRST_POINTS:,} " in text(ROOT / name), name
