"""Builds the documents as a site, build/site: `make docs`, which has installed requirements/docs.txt.

mkdocs gets a copy of the pages, each at its place in the repository, so that links among them are the same here and on
GitHub. On the site each page has a switch between the languages: links from a page to the same page in the other
language are left out, and a link to a Chinese page is one to the page, which has the language of its reader.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "build" / "docs"
SITE = ROOT / "build" / "site"
ID = re.compile(r'\sid="([^"]+)"')
HREF = re.compile(r'(?:href|src)="(?![a-z]+:|//|/|#"|data:)([^"]+)"')
LINK = re.compile(r"(\]\()([^)\s]+)(\))")
OTHER_LANGUAGE = re.compile(r"^\[(?:中文|English)\]\([\w.-]+\.md\)\n+", re.M)
BESIDE = re.compile(r", \[中文\]\([\w./-]+\.zh-CN\.md\)|，\[English\]\([\w./-]+\.md\)")


def documents() -> list[Path]:
    """The pages of the repository."""
    below = [path for folder in ("docs", "examples") for path in (ROOT / folder).rglob("*.md")]
    return [*ROOT.glob("*.md"), ROOT / "bench" / "README.md", *below]


def copy_page(page: Path) -> None:
    """Copy a page, and what it links to that is no page."""

    def changed(match: re.Match[str]) -> str:
        link, _, anchor = match[2].partition("#")
        target = (page.parent / link).resolve()
        if "://" in link or not link:
            return match[0]
        if target.is_dir():
            link = f"{link}/README.md"
        elif target.suffix != ".md":
            copy_file(target)
        link = link.replace(".zh-CN.md", ".md")
        return f"{match[1]}{link}{'#' * bool(anchor)}{anchor}{match[3]}"

    text = BESIDE.sub("", OTHER_LANGUAGE.sub("", page.read_text(encoding="utf-8")))
    place = PAGES / page.relative_to(ROOT)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(LINK.sub(changed, text), encoding="utf-8")


def copy_file(path: Path) -> None:
    """Copy a picture, a program or another file to its place beside the pages."""
    place = PAGES / path.relative_to(ROOT)
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, place)


def dead_links() -> list[str]:
    """Return the links within the site that lead nowhere, each after its page. mkdocs does not check the anchors in
    pages that have no translation."""
    texts = {page: page.read_text(encoding="utf-8") for page in SITE.rglob("*.html")}
    ids = {page: set(ID.findall(text)) for page, text in texts.items()}
    dead = []
    for page, text in texts.items():
        for link in dict.fromkeys(HREF.findall(text)):
            path, _, anchor = unquote(link).partition("#")
            target = (page.parent / path).resolve() if path else page
            if not target.exists() or (anchor and target in ids and anchor not in ids[target]):
                dead.append(f"{page.relative_to(SITE)}: {link}")
    return dead


def main() -> int:
    """Copy all pages and build the site; return mkdocs' exit status, or 1 if a link leads nowhere."""
    shutil.rmtree(PAGES, ignore_errors=True)
    for page in documents():
        copy_page(page)
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--clean", "--quiet"]
    status = subprocess.run(command, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, check=False).returncode
    if status:
        return status
    if dead := dead_links():
        print("links that lead nowhere:", *dead, sep="\n", file=sys.stderr)
        return 1
    print(f"built: {SITE / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
