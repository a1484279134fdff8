"""Tests which paths of a node a container sees, and under which names."""

from __future__ import annotations

import csv
from pathlib import Path

from howdah.executor.process.image_mounts import NodeMounts


def mounts(writable: list[Path], linking: list[Path], taken: tuple[str, ...] = ()) -> dict[str, tuple[str, bool]]:
    """Return source and "may be written" by target."""
    found = {}
    for option in NodeMounts([str(path) for path in writable], [str(path) for path in linking]).options(set(taken)):
        ((kind, source, target, *read_only),) = csv.reader([option])
        assert (kind, read_only) in (("type=bind", []), ("type=bind", ["ro"]))
        found[target.partition("=")[2]] = (source.partition("=")[2], not read_only)
    return found


def test_a_directory_has_all_the_names_that_lead_to_it(tmp_path: Path) -> None:
    (tmp_path / "real/work").mkdir(parents=True)
    (tmp_path / "middle").symlink_to("real")
    (tmp_path / "home").symlink_to(tmp_path / "middle")
    real = str(tmp_path / "real/work")
    assert mounts([tmp_path / "home/work"], []) == {
        str(tmp_path / "home/work"): (real, True),
        str(tmp_path / "middle/work"): (real, True),
        real: (real, True),
    }


def test_what_links_lead_to_is_there_under_the_links_own_words(tmp_path: Path) -> None:
    work, real = tmp_path / "work", tmp_path / "real"
    (work / "in").mkdir(parents=True)
    real.mkdir()
    (real / "file").touch()
    (tmp_path / "named").symlink_to(real)
    (work / "in/far").symlink_to("../../named/file")
    (work / "near").symlink_to("in")
    (work / "nothing").symlink_to("/no/such")
    (work / "null").symlink_to("/proc/self/status")
    file = str(real / "file")
    assert mounts([work], [work]) == {
        str(work): (str(work), True),
        str(tmp_path / "named/file"): (file, False),
        file: (file, False),
    }


def test_many_links_into_a_directory_show_the_directory(tmp_path: Path) -> None:
    work, cache = tmp_path / "work", tmp_path / "cache"
    work.mkdir()
    cache.mkdir()
    for number in range(51):
        (cache / str(number)).touch()
        (work / str(number)).symlink_to(cache / str(number))
    assert mounts([work], [work]) == {str(cache): (str(cache), False), str(work): (str(work), True)}


def test_a_written_directory_below_one_that_a_link_leads_to_stays_writable(tmp_path: Path) -> None:
    work, shared = tmp_path / "work", tmp_path / "shared"
    work.mkdir()
    (shared / "ckpt").mkdir(parents=True)
    (work / "link").symlink_to(shared)
    found = mounts([work, work / "link/ckpt"], [work])
    assert found[str(shared / "ckpt")] == (str(shared / "ckpt"), True)
    assert found[str(shared)] == (str(shared), False)
    assert list(found).index(str(shared)) < list(found).index(str(shared / "ckpt"))


def test_commas_and_quotation_marks_are_quoted_and_the_jobs_own_mounts_go_first(tmp_path: Path) -> None:
    odd = tmp_path / 'a,b:"c'
    odd.mkdir()
    assert mounts([odd], []) == {str(odd): (str(odd), True)}
    assert mounts([odd], [], (str(odd),)) == {}
