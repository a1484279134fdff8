"""Take the pictures of docs/screens: `python frontend/dev/screens.py [FOLDER]` runs examples and opens their pages.

The pictures show real jobs, in English and Chinese: digits-tensorflow, which trains with two workers and a parameter
server on this machine, digits-pytorch, and in the list of jobs a few other examples. Needs Chromium, Playwright and the
built page (`tools/frontend dev`). tests/browser/test_screens.py runs it, too.
"""

from __future__ import annotations

import argparse
import base64
import itertools
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "browser"))

from browser import Tab, chromium, missing  # noqa: E402 - from tests/browser
from local_jobs import LocalJobs  # noqa: E402
from playwright.sync_api import Browser, Page  # noqa: E402

TENSORFLOW, PYTORCH = "digits-tensorflow", "digits-pytorch"
EPOCHS = 60
"""More than the example's ten, so that curves have a shape and resource usage is sampled several times."""
OTHERS = ("here-rendezvous", "digits-fsspec", "digits-tensorflow-sync", "digits-tensorflow-mwms")
"""Examples that are also in the list of jobs. They need little beyond what the training needs."""
RUN_LIMIT_S = 900.0
DRAWN_MS = 1500
"""How long charts may take until they are drawn."""
MAX_BYTES, MAX_ALL_BYTES = 200_000, 1_500_000
"""Of one picture, and of all of them."""
_TO_WEBP = """async data => {
  const image = new Image();
  image.src = `data:image/png;base64,${data}`;
  await image.decode();
  const canvas = Object.assign(document.createElement("canvas"), {width: image.width, height: image.height});
  canvas.getContext("2d").drawImage(image, 0, 0);
  return canvas.toDataURL("image/webp", 0.9);
}"""
LANGUAGES = {"": "en-GB", "zh-": "zh-CN"}
"""What the names of pictures begin with, and the browser's language."""

# Picture, theme, the example whose job it shows, address, and what is on the screen once it is there.
SCREENS = (
    ("overview", "light", TENSORFLOW, "jobs/{job}", "main .uplot"),
    ("tasks", "light", TENSORFLOW, "jobs/{job}/tasks", "main [role=cell] a"),
    ("timeline", "light", TENSORFLOW, "jobs/{job}/timeline", "main .timeline-bar"),
    ("timeline-dark", "dark", TENSORFLOW, "jobs/{job}/timeline", "main .timeline-bar"),
    ("curves", "light", TENSORFLOW, "jobs/{job}/curves", "main .uplot"),
    ("curves-histograms", "light", TENSORFLOW, "jobs/{job}/curves/histograms", "main .uplot"),
    ("logs", "light", TENSORFLOW, "jobs/{job}/logs?task=chief:0", "main .log [data-line]"),
    ("pytorch-overview", "light", PYTORCH, "jobs/{job}", "main .uplot"),
    ("pytorch-logs", "light", PYTORCH, "jobs/{job}/logs?task=worker:0", "main .log [data-line]"),
    ("history", "light", "", "jobs", "main [role=cell] a"),
)


def make_command(folder: Path) -> str:
    """Make a `howdah` command below `folder`: jobs show the path of their Python, which would be in this checkout."""
    (folder / "venv").symlink_to(sys.prefix)
    command = folder / "howdah"
    command.write_text(f"#!{folder}/venv/bin/python\nfrom howdah.cli import main\n\nmain()\n")
    command.chmod(0o755)
    return str(command)


def run_example(jobs: LocalJobs, name: str, *options: str) -> str:
    """Run an example to its end and return the job's id."""
    run = jobs.start("run", *options, str(jobs.directory / "examples" / name / "job.yaml"))
    if run.process.wait(RUN_LIMIT_S) != 0:
        sys.exit(f"{name} failed:\n{run.text}")
    print(f"{name}: {run.job}", flush=True)
    return run.job


def as_webp(page: Page, png: bytes) -> bytes:
    """Return a picture as WebP, with half of the bytes, by the browser's own encoder."""
    encoded: str = page.evaluate(_TO_WEBP, base64.b64encode(png).decode())
    return base64.b64decode(encoded.partition(",")[2])


def take_pictures(browser: Browser, link: str, jobs: dict[str, str], folder: Path) -> None:
    """Take a picture of every screen of the history server at `link`, in each language."""
    tabs: dict[tuple[str, str], Tab] = {}
    encoder, size = browser.new_page(), 0
    for (begin, language), (name, theme, example, address, sign) in itertools.product(LANGUAGES.items(), SCREENS):
        if (theme, language) not in tabs:
            tabs[theme, language] = Tab(browser, link, theme, language)
        tab = tabs[theme, language]
        tab.go(address.format(job=jobs.get(example, "")))
        tab.page.locator(sign).first.wait_for()
        tab.page.wait_for_timeout(DRAWN_MS)
        picture = folder / f"{begin}{name}.webp"
        picture.write_bytes(as_webp(encoder, tab.page.screenshot()))
        size += picture.stat().st_size
        if picture.stat().st_size > MAX_BYTES:
            sys.exit(f"{picture}: more than {MAX_BYTES} bytes")
    wrong = [problem for tab in tabs.values() for problem in tab.wrong]
    if wrong:
        sys.exit("\n".join(wrong))
    if size > MAX_ALL_BYTES:
        sys.exit(f"{folder}: the pictures have {size} bytes, more than {MAX_ALL_BYTES}")


def main() -> None:
    """Run the examples with a home of their own, then take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "docs" / "screens")
    target = parser.parse_args().folder
    if missing():
        sys.exit(missing())
    with tempfile.TemporaryDirectory(prefix="howdah-") as home, chromium() as browser:
        jobs = LocalJobs(Path(home), make_command(Path(home)))
        jobs.environment["HOWDAH_LOCAL_VCORES"] = "8"  # the tasks of an example may share fewer processors
        shutil.copytree(
            ROOT / "examples", jobs.directory / "examples", ignore=shutil.ignore_patterns("models", "__pycache__")
        )
        try:
            for name in OTHERS:
                run_example(jobs, name)
            longer = f"roles.chief.command=python train.py --epochs {EPOCHS}"
            shown = {PYTORCH: run_example(jobs, PYTORCH), TENSORFLOW: run_example(jobs, TENSORFLOW, "--set", longer)}
            take_pictures(browser, jobs.start("history", "--port", "0").link, shown, target)
        finally:
            jobs.end_all()


if __name__ == "__main__":
    main()
