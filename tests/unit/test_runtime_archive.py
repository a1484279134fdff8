"""Tests that the runtime archive runs under other Pythons, without anything else of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import howdah
from howdah.spec import StagedFile, plugins
from howdah.spec.staged import MODULES, PAGE, RUNTIME
from howdah.staging.runtime_archive import page, stage_runtime


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[StagedFile, Path]:
    directory = tmp_path_factory.mktemp("runtime")
    file = stage_runtime("hdfs://n/home", directory / "cache")
    with zipfile.ZipFile(file.source) as archive:
        archive.extractall(directory / "unpacked")
    return file, directory


def interpreter(version: str) -> str | None:
    """A CPython of that version which answers to its name: a version manager's stand-in need not."""
    kept = Path.home().glob(f".pyenv/versions/{version}.*/bin/python3")
    for path in [shutil.which(f"python{version}"), *map(str, kept)]:
        command = [path or "false", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        if subprocess.run(command, capture_output=True, text=True).stdout.strip() == version:
            return path
    return None


def test_the_runtime_archive_is_built_once(built: tuple[StagedFile, Path]) -> None:
    file, directory = built
    made = Path(file.source).stat().st_mtime_ns
    assert stage_runtime("hdfs://n/home", directory / "cache") == file
    assert Path(file.source).stat().st_mtime_ns == made
    assert (file.name, file.kind) == (RUNTIME, "archive")
    assert file.uri == f"hdfs://n/home/cache/{file.sha256[:2]}/{file.sha256}-{Path(file.source).name}"
    assert Path(file.source).stat().st_size == file.size < 16 << 20


def test_the_runtime_archive_has_what_nodes_need_and_nothing_else(built: tuple[StagedFile, Path]) -> None:
    unpacked = built[1] / "unpacked" / MODULES
    for name in ("howdah/executor", "howdah/master", "howdah/inputs", "google/protobuf", "hdfs_native"):
        assert (unpacked / name).exists(), name
    assert (built[1] / "unpacked" / "VERSION").is_file()
    for name in ("howdah/cli", "howdah/client", "howdah/sandbox", "howdah/api/static", "fsspec", "click"):
        assert not (unpacked / name).exists(), name


def test_a_node_manager_lists_few_of_its_files(built: tuple[StagedFile, Path]) -> None:
    container = built[1] / "container"
    container.mkdir()
    (container / RUNTIME).symlink_to(built[1] / "unpacked")
    listing = ["find", "-L", ".", "-maxdepth", "5", "-ls"]  # of launch_container.sh
    assert len(subprocess.run(listing, cwd=container, capture_output=True).stdout.splitlines()) < 10


def test_an_engine_of_another_package_travels_and_hdfs_only_where_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package, metadata = tmp_path / "acme_cluster", tmp_path / "acme_cluster-1.0.dist-info"
    package.mkdir()
    metadata.mkdir()
    (package / "__init__.py").write_text("")
    (package / "engine.py").write_text("")
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: acme-cluster\nVersion: 1.0\nRequires-Dist: howdah\n"
    )
    (metadata / "entry_points.txt").write_text("[howdah.engines]\nacme = acme_cluster.engine:INFO\n")
    (metadata / "RECORD").write_text(
        "".join(f"{metadata.name}/{name},,\n" for name in ("METADATA", "entry_points.txt"))
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert plugins.distribution("howdah.engines", "acme") == "acme-cluster"
    assert plugins.distribution("howdah.engines", "yarn") == ""
    file = stage_runtime("s3://b/home", tmp_path / "cache", libraries=(), plugins=("acme-cluster",))
    with zipfile.ZipFile(file.source) as archive:
        names = {name.removeprefix(f"{MODULES}/") for name in archive.namelist()}
    assert {"acme_cluster/engine.py", f"{metadata.name}/entry_points.txt", "howdah/executor/executor.py"} <= names
    assert not any(name.startswith(("hdfs_native", "google/protobuf")) for name in names)


@pytest.mark.parametrize("version", ["3.9", "3.10", "3.13", "{}.{}".format(*sys.version_info)])
def test_the_runtime_archive_runs_without_other_packages(built: tuple[StagedFile, Path], version: str) -> None:
    found = interpreter(version)
    code = "import howdah.executor, sys; print(sys.version_info[0])"
    if version != "3.9":
        code += "; import google.protobuf.message, hdfs_native, howdah.outputs.commit, howdah.inputs.transfer"
        code += "; import importlib.metadata as m; assert m.entry_points(group='howdah.engines')"
    environment = {
        "PYTHONPATH": str(built[1] / "unpacked" / MODULES),
        "PATH": os.environ["PATH"],
        "HOME": str(built[1]),
    }
    if not found:
        pytest.skip(f"no CPython {version} here")
    done = subprocess.run([found, "-S", "-c", code], env=environment, capture_output=True, text=True, cwd="/")
    assert (done.stdout, done.stderr) == ("3\n", "")


@pytest.mark.parametrize("version", ["3.10", "3.13", "{}.{}".format(*sys.version_info)])
def test_what_draws_charts_travels(built: tuple[StagedFile, Path], version: str) -> None:
    pytest.importorskip("resvg_py")
    code = (
        "import sys; from howdah.eventfiles.png import png; "
        'sys.stdout.buffer.write(png(\'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="7"/>\'))'
    )
    environment = {
        "PYTHONPATH": str(built[1] / "unpacked" / MODULES),
        "PATH": os.environ["PATH"],
        "HOME": str(built[1]),
    }
    if not (found := interpreter(version)):
        pytest.skip(f"no CPython {version} here")
    done = subprocess.run([found, "-S", "-c", code], env=environment, capture_output=True, cwd="/")
    assert done.stdout.startswith(b"\x89PNG"), done.stderr.decode()
    assert done.stdout[16:24] == bytes((0, 0, 0, 9, 0, 0, 0, 7))
    with zipfile.ZipFile(built[0].source) as archive:
        packed = sum(
            each.compress_size for each in archive.infolist() if each.filename.startswith(f"{MODULES}/resvg_py/")
        )
    assert 0 < packed < 2 << 20


def test_the_page_is_an_archive_of_its_own(tmp_path: Path) -> None:
    """For the master alone; the files lie in it as they are sent."""
    built = any((Path(howdah.__file__).parent / "api" / "static").glob("index.html*"))
    found = page("hdfs://n/home", tmp_path)
    assert len(found) == built
    for file in found:
        assert file.name == PAGE
        assert page("hdfs://n/home", tmp_path) == found
        with zipfile.ZipFile(file.source) as archive:
            assert "index.html.gz" in archive.namelist()
            assert all(name.endswith(".gz") for name in archive.namelist())
