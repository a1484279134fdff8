"""Take the pictures of docs/screens: `python frontend/dev/screens.py [FOLDER]` runs examples and opens their pages.

The pictures show real jobs: digits-tensorflow, which trains with two workers and a parameter server on this machine,
and for the list of jobs a few other examples. Needs Chromium, Playwright and the built page (`tools/frontend dev`).
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "browser"))

from browser import Tab, chromium, missing  # noqa: E402 - from tests/browser
from local_jobs import LocalJobs  # noqa: E402
from playwright.sync_api import Browser  # noqa: E402

TRAINING = "digits-tensorflow"
EPOCHS = 60
"""More than the example's ten, so that curves have a shape and resource usage is sampled several times."""
OTHERS = ("here-rendezvous", "digits-fsspec", "digits-tensorflow-sync", "digits-tensorflow-mwms")
"""Examples that are also in the list of jobs. They need little beyond what the training needs."""
RUN_LIMIT_S = 900.0
DRAWN_MS = 1500
"""How long charts may take until they are drawn."""
MAX_BYTES = 300_000

# Picture, theme, language, address, and what is on the screen once it is there.
SCREENS = (
    ("overview", "light", "en-GB", "jobs/{job}", "main table.small"),
    ("tasks", "light", "en-GB", "jobs/{job}/tasks", "main [role=cell] a"),
    ("timeline", "light", "en-GB", "jobs/{job}/timeline", "main .timeline-bar"),
    ("timeline-dark", "dark", "en-GB", "jobs/{job}/timeline", "main .timeline-bar"),
    ("curves", "light", "en-GB", "jobs/{job}/curves", "main .uplot"),
    ("curves-histograms", "light", "en-GB", "jobs/{job}/curves/histograms", "main .uplot"),
    ("logs", "light", "en-GB", "jobs/{job}/logs?task=chief:0", "main .log [data-line]"),
    ("history", "light", "en-GB", "jobs", "main [role=cell] a"),
    ("zh-tasks", "light", "zh-CN", "jobs/{job}/tasks", "main [role=cell] a"),
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


def take_pictures(browser: Browser, link: str, job: str, folder: Path) -> None:
    """Take a picture of every screen of the history server at `link`."""
    tabs: dict[tuple[str, str], Tab] = {}
    for name, theme, language, address, sign in SCREENS:
        if (theme, language) not in tabs:
            tabs[theme, language] = Tab(browser, link, theme, language)
        tab = tabs[theme, language]
        tab.go(address.format(job=job))
        tab.page.locator(sign).first.wait_for()
        tab.page.wait_for_timeout(DRAWN_MS)
        picture = folder / f"{name}.png"
        tab.page.screenshot(path=picture)
        if picture.stat().st_size > MAX_BYTES:
            sys.exit(f"{picture}: more than {MAX_BYTES} bytes")
    wrong = [problem for tab in tabs.values() for problem in tab.wrong]
    if wrong:
        sys.exit("\n".join(wrong))


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
            job = run_example(jobs, TRAINING, "--set", f"roles.chief.command=python train.py --epochs {EPOCHS}")
            take_pictures(browser, jobs.start("history", "--port", "0").link, job, target)
        finally:
            jobs.end_all()


if __name__ == "__main__":
    main()
