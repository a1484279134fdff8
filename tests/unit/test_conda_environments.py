"""Tests finding conda environments, and packing them by conda-pack itself."""

from __future__ import annotations

import json
import sys
import tarfile
from pathlib import Path

import pytest

from howdah.errors import SpecError, StagingError
from howdah.staging import conda_environments
from howdah.staging.conda_environments import environment_key, find_prefix, pack, packages


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CONDA_EXE", "MAMBA_ROOT_PREFIX", "CONDA_ENVS_DIRS", "CONDA_ENVS_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("HOWDAH_HOME", str(tmp_path / "howdah"))
    return tmp_path


def conda_environment(prefix: Path) -> Path:
    """Write a directory as conda leaves it: a package with a program, its record, and a package of pip's."""
    program = prefix / "bin" / "hello"
    site_packages = prefix / "lib" / "python3.11" / "site-packages"
    (site_packages / "six-1.17.0.dist-info").mkdir(parents=True)
    (site_packages / "six-1.17.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: six\nVersion: 1.17.0\n"
    )
    program.parent.mkdir()
    program.write_text(f"#!{prefix}/bin/python\nprint('hello')\n")
    program.chmod(0o755)
    (prefix / "bin" / "python").symlink_to(sys.executable)
    (prefix / "conda-meta").mkdir()
    (prefix / "conda-meta" / "history").write_text("==> 2026-01-01 00:00:00 <==\n")
    record = {"name": "hello", "version": "2.0", "url": "", "link": {}, "files": ["bin/hello"]}
    (prefix / "conda-meta" / "hello-2.0-py_0.json").write_text(json.dumps(record))
    return prefix


def test_environments_are_found_by_name_and_by_directory(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train = conda_environment(home / "miniconda" / "envs" / "train")
    base = conda_environment(home / "miniconda")
    mamba = conda_environment(home / "mamba" / "envs" / "serve")
    elsewhere = conda_environment(home / "work" / "tune")
    (home / ".conda").mkdir()
    (home / ".conda" / "environments.txt").write_text(f"{elsewhere}\n{home}/gone\n\n{base}\n")
    (base / "condabin").mkdir()
    monkeypatch.setenv("CONDA_EXE", str(base / "bin" / "conda"))
    monkeypatch.setenv("MAMBA_ROOT_PREFIX", str(home / "mamba"))
    for name, prefix in {"train": train, "base": base, "serve": mamba, "tune": elsewhere}.items():
        assert find_prefix(name, home) == prefix
    assert find_prefix("work/tune", home) == elsewhere
    assert find_prefix(str(train), Path("/")) == train
    with pytest.raises(
        SpecError, match=r"environment\.conda: is 'trian', .*known are base, serve, train, tune.*'train'"
    ):
        find_prefix("trian", home)
    with pytest.raises(SpecError, match=r"'\./work': no conda environment, which has a directory conda-meta"):
        find_prefix("./work", home)


def test_without_conda_a_directory_is_asked_for(home: Path) -> None:
    with pytest.raises(
        SpecError, match="is 'train', must be a conda environment: none is known here, write its directory"
    ):
        find_prefix("train", home)


def test_an_environment_is_packed_once_for_what_is_installed(home: Path) -> None:
    prefix = conda_environment(home / "train")
    said: list[str] = []
    archive = pack(prefix, lambda text: said.append(str(text)))
    assert pack(prefix, lambda text: said.append(str(text))) == archive
    assert said == [f"packing the conda environment {prefix}: once, into {archive}"]
    with tarfile.open(archive) as tar:
        program = tar.extractfile("bin/hello")
        assert program is not None
        assert program.read().startswith(b"#!/usr/bin/env python\n"), "it would look for this machine's directory"
    assert {path.name for path in archive.parent.iterdir()} == {archive.name, f".{archive.name}.lock"}

    key = environment_key(prefix)
    (prefix / "conda-meta" / "more-1-0.json").write_text("{}")
    assert environment_key(prefix) != key
    assert packages(prefix) == {"hello": "2.0", "more": "1", "six": "1.17.0"}


def test_what_conda_pack_refuses_is_told_and_leaves_nothing(home: Path) -> None:
    prefix = conda_environment(home / "train")
    (prefix / "bin" / "hello").unlink()
    with pytest.raises(StagingError, match=r"train: cannot be packed by .*\n(.*\n)*.*hello"):
        pack(prefix, lambda _: None)
    assert not list((home / "howdah").rglob("*.tar.gz"))


def test_without_conda_pack_the_way_out_is_told(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prefix = conda_environment(home / "train")
    monkeypatch.setattr(conda_environments.importlib.util, "find_spec", lambda _: None)
    monkeypatch.setenv("PATH", str(home))
    with pytest.raises(
        SpecError, match=r"conda-pack, which packs it, is not here: install it \(`pip install conda-pack`"
    ):
        pack(prefix, lambda _: None)
