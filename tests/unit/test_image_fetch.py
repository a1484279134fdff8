"""Tests how the helper that fetches images tells kinds of archives, and what it says to apptainer and docker."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from howdah.executor.image_fetch import ImageNotFetched, archive_kind, fetch_image
from howdah.wire.helper_messages import ImageFetchRequest

LAYER = "0" * 64
SAVED_BY_DOCKER = (f"{LAYER}/layer.tar", f"{LAYER}.json", "manifest.json", "repositories")
SAVED_AS_OCI = ("blobs/sha256/00", "index.json", "oci-layout")


def archive(path: Path, *names: str) -> Path:
    with tarfile.open(path, "w:gz" if path.suffix == ".gz" else "w") as tar:
        for name in names:
            entry = tarfile.TarInfo(name)
            entry.size = 5
            tar.addfile(entry, io.BytesIO(b"bytes"))
    return path


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (SAVED_BY_DOCKER, "docker-archive"),
        ((f"{LAYER}.tar", f"{LAYER}.json", "manifest.json"), "docker-archive"),
        ((*SAVED_AS_OCI, "manifest.json"), "docker-archive"),
        (SAVED_AS_OCI, "oci-archive"),
        (("./bin/sh", "./etc/passwd"), "root"),
        (("manifest.json", "bin/sh"), "root"),
    ],
)
@pytest.mark.parametrize("suffix", ["tar", "tar.gz"])
def test_the_content_tells_the_kind(names: tuple[str, ...], kind: str, suffix: str, tmp_path: Path) -> None:
    assert archive_kind(str(archive(tmp_path / f"a.{suffix}", *names))) == kind


def test_a_file_that_is_no_archive_has_no_kind(tmp_path: Path) -> None:
    (tmp_path / "a.sif").write_bytes(b"#!/usr/bin/env run-singularity\n\0SIF_MAGIC")
    assert archive_kind(str(tmp_path / "a.sif")) == ""


def test_half_of_a_saved_archive_is_not_taken_for_a_root_directory(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.tar", *SAVED_BY_DOCKER)
    path.write_bytes(path.read_bytes()[:1100])
    with pytest.raises(ImageNotFetched, match="the archive is damaged"):
        archive_kind(str(path))


def test_apptainer_is_told_the_kind_of_an_archive(tmp_path: Path) -> None:
    def words(path: Path) -> tuple[str, ...]:
        return fetch_image(ImageFetchRequest("/bin/apptainer", "./x", str(path))).words

    saved, oci = archive(tmp_path / "a.tar", *SAVED_BY_DOCKER), archive(tmp_path / "b.tar", *SAVED_AS_OCI)
    assert words(saved) == (f"docker-archive:{saved}",)
    assert words(oci) == (f"oci-archive:{oci}",)
    (tmp_path / "a.sif").write_bytes(b"SIF")
    assert words(tmp_path / "a.sif") == (str(tmp_path / "a.sif"),)
    assert words(tmp_path) == (str(tmp_path),)
    with pytest.raises(ImageNotFetched, match="apptainer runs no archive of a root directory"):
        words(archive(tmp_path / "root.tar", "bin/sh"))


def test_docker_runs_no_directory(tmp_path: Path) -> None:
    with pytest.raises(ImageNotFetched, match="docker runs no directory"):
        fetch_image(ImageFetchRequest("/bin/docker", "./x", str(tmp_path)))
