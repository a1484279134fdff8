"""Tests staging a job's files on this machine, and that all missing files are reported at once."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from howdah.errors import SpecError, StagingError
from howdah.inputs.assignment import explain_shortages, plan_fetches
from howdah.spec import Environment, Input, JobSpec, Output, Role, StagedFile, TaskId, uris
from howdah.spec.working_files import packed_file
from howdah.staging import archive
from howdah.staging.files_wrong import FilesWrong
from howdah.staging.stage import archive_file, stage
from howdah.storage.content_cache import Cache, location, sha256_of
from howdah.storage.factory import filesystem

ROLES = {"worker": Role("true", 2)}


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> str:
    directory = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOWDAH_HOME", str(directory))
    return uris.of_local(directory / "state")


def write(path: Path, text: str = "x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_files_are_named_by_content(tmp_path: Path, home: str) -> None:
    write(tmp_path / "train.py", "print(1)")
    (file,) = stage(JobSpec(ROLES, files=("train.py#main.py",)), tmp_path, home).files
    digest = sha256_of(tmp_path / "train.py")
    uri = location(home, digest, "train.py")
    assert file == StagedFile("main.py", uri, "file", str(tmp_path / "train.py"), digest, 8)
    placed = Cache(home).place(file)
    assert (placed.size, placed.modified_ms > 0) == (8, True)
    assert Path(uris.path(uri)).read_text() == "print(1)"


def test_a_directory_travels_as_an_archive_without_what_is_no_code(tmp_path: Path, home: str) -> None:
    for name in ("lib/a.py", "lib/.git/config", "lib/__pycache__/a.pyc", "lib/sub/b.py"):
        write(tmp_path / name)
    (tmp_path / "lib/link").symlink_to("a.py")
    (tmp_path / "lib/a.py").chmod(0o755)
    (file,) = stage(JobSpec(ROLES, files=("lib",)), tmp_path, home).files
    assert (file.name, file.kind) == ("lib", "archive")
    with tarfile.open(file.source) as tar:
        members = {member.name: (member.mode, member.mtime, member.linkname) for member in tar}
    assert members == {
        "a.py": (0o755, 0, ""),
        "link": (0o644, 0, "a.py"),
        "sub/b.py": (0o644, 0, ""),
    }


def test_no_link_of_a_container_has_a_colon(tmp_path: Path, home: str) -> None:
    """YARN takes none; the executor copies what is in the archives to its place."""
    write(tmp_path / "run_12:30.cfg")
    write(tmp_path / "lib:1/a.py")
    archive.write(archive.members(tmp_path / "lib:1"), tmp_path / "pack.tar")
    files = ("run_12:30.cfg", "lib:1", "lib:1/a.py#b.py")
    found = stage(JobSpec(ROLES, files=files, archives=("pack.tar#at:1",)), tmp_path, home).files
    assert all(":" not in file.name for file in found)
    placed = {}
    for file in found:
        if file.kind == "spread":
            with tarfile.open(file.source) as tar:
                placed[file.into] = tar.getnames()
    assert placed == {"": ["run_12:30.cfg"], "lib:1": ["a.py"], "at:1": ["a.py"]}


def test_a_directory_that_is_elsewhere_is_fetched_whole_by_those_who_have_it(tmp_path: Path, home: str) -> None:
    for name in ("lib/__init__.py", "lib/sub/a.py", "own/.x", "ps/own/.x", "input/data"):
        write(tmp_path / name)
    own = {role: (uris.of_local(tmp_path / name),) for role, name in (("worker", "own"), ("ps", "ps/own"))}
    roles = {"worker": Role("true", 2, files=own["worker"]), "ps": Role("true", files=own["ps"])}
    job = JobSpec(roles, files=(f"{uris.of_local(tmp_path / 'lib')}#code",), inputs=(Input("input"),))
    staged = stage(replace(job, inputs=(replace(job.inputs[0], share="all"),)), tmp_path, home)
    assert staged.files == ()
    found = {
        str(task): {f"{fetch.to}/{file.name}" for fetch in plan_fetches(staged, task) for file in fetch.files}
        for task in (TaskId("worker", 0), TaskId("worker", 1), TaskId("ps", 0))
    }
    worker = {"code/__init__.py", "code/sub/a.py", "own/.x", "input/data"}
    ps = {"code/__init__.py", "code/sub/a.py", "own/.x"}
    assert found == {"worker:0": worker, "worker:1": worker, "ps:0": ps}
    mounted = replace(job, environment=Environment(image="i", mounts=("code:/opt/code:rw",)))
    with pytest.raises(SpecError, match=r"environment\.mounts\.0: is 'code:/opt/code:rw', a directory on the cluster"):
        stage(replace(mounted, inputs=()), tmp_path, home)
    with pytest.raises(SpecError, match=r"archives\.0: file:///.*lib is a directory; pack it"):
        stage(JobSpec(roles, archives=(uris.of_local(tmp_path / "lib"),)), tmp_path, home)


def test_the_same_directory_gives_the_same_archive(tmp_path: Path) -> None:
    for directory in ("one", "two"):
        for name in ("a", "b/c"):
            write(tmp_path / directory / name, name)
    os.utime(tmp_path / "one/a", (1, 1))
    (first,) = archive.directory(tmp_path / "one", tmp_path / "packed1")
    (second,) = archive.directory(tmp_path / "two", tmp_path / "packed2")
    assert first.name == second.name
    assert first.read_bytes() == second.read_bytes()


def test_what_is_ignored_stays_here(tmp_path: Path, home: str) -> None:
    for name in ("lib/a.py", "lib/data/big.bin", "lib/data/keep.txt", "lib/sub/b.log", "lib/sub/c.log", "lib/b.log"):
        write(tmp_path / name)
    (tmp_path / "lib/.howdahignore").write_text("/data/*\n!/data/keep.txt\n# words\n*.log\n")
    (tmp_path / "lib/sub/.howdahignore").write_text("none\n")
    (file,) = stage(JobSpec(ROLES, files=("lib",)), tmp_path, home).files
    with tarfile.open(file.source) as tar:
        assert tar.getnames() == [".howdahignore", "a.py", "data/keep.txt", "sub/.howdahignore"]


def test_what_git_ignores_stays_here_and_is_told(tmp_path: Path, home: str) -> None:
    names = ("a.py", "data/big.bin", ".venv/bin/x", "model.pt", "sub/b.log", "sub/c.py", "built.so", "sub/kept.log")
    for name in names:
        write(tmp_path / "lib" / name)
    write(tmp_path / "lib/.gitignore", "data/\n.venv\n*.pt\n*.so\n*.log\n")
    write(tmp_path / "lib/sub/.gitignore", "!kept.log\n")
    write(tmp_path / "lib/.howdahignore", "!*.so\n/sub/.gitignore\n")
    said: list[str] = []
    (file,) = stage(JobSpec(ROLES, files=("lib",)), tmp_path, home, notice=lambda text: said.append(str(text))).files
    with tarfile.open(file.source) as tar:
        packed = [".gitignore", ".howdahignore", "a.py", "built.so", "sub/c.py", "sub/kept.log"]
        assert tar.getnames() == packed
    assert said == [
        f"{tmp_path}/lib/{name} is left out: a .gitignore names it; a line !{name.rpartition('/')[2]} in a"
        " .howdahignore beside it sends it along"
        for name in ("data", "model.pt", "sub/b.log")
    ]
    write(tmp_path / "lib/sub/.gitignore", "!\nfoo\\\nb.log\n").write_bytes("# 数据\n!\nfoo\\\nb.log\n".encode("gbk"))
    assert stage(JobSpec(ROLES, files=("lib",)), tmp_path, home).files, "git reads it, too"
    write(tmp_path / "venv/.gitignore", "*\n")
    with pytest.raises(
        SpecError, match=r"a \.gitignore names all that is in it; `!\*` in a \.howdahignore there sends it"
    ):
        stage(JobSpec(ROLES, files=("venv",)), tmp_path, home)
    # The digest of a package that is installed counts files that its build has made.
    names = [member.name for member in archive.members(tmp_path / "lib", with_ignored_files=True)]
    assert "model.pt" in names
    assert "data/big.bin" not in names


@pytest.mark.parametrize("mode", [0o600, 0o700, 0o644, 0o755])
def test_private_files_stay_private(tmp_path: Path, home: str, mode: int) -> None:
    for name in ("key", "code/key"):
        write(tmp_path / name).chmod(mode)
    private = mode in (0o600, 0o700)
    alone, directory = stage(JobSpec(ROLES, files=("key", "code")), tmp_path, home).files
    assert (alone.kind, packed_file(alone.name)) == (("spread", "key") if private else ("file", ""))
    for file in (alone, directory) if private else (directory,):
        with tarfile.open(file.source) as tar:
            assert [(member.name, member.mode) for member in tar] == [("key", mode)]


def test_a_change_in_a_large_directory_brings_one_part_anew(tmp_path: Path, home: str) -> None:
    chance = random.Random(1)
    (tmp_path / "lib").mkdir()
    for number in range(150):
        (tmp_path / f"lib/{number:03}").write_bytes(chance.randbytes(1 << 19))
    job = JobSpec(ROLES, files=("lib",))
    before = stage(job, tmp_path, home).files
    assert len(before) > 2
    assert {(file.kind, file.into) for file in before} == {("spread", "lib")}
    (tmp_path / "lib/070").write_bytes(b"changed")
    (tmp_path / "lib/070a").write_bytes(b"new")
    after = stage(job, tmp_path, home).files
    assert len({file.sha256 for file in after} - {file.sha256 for file in before}) == 1
    names = []
    for file in after:
        with tarfile.open(file.source) as tar:
            names += tar.getnames()
    assert names == sorted(entry.name for entry in (tmp_path / "lib").iterdir())


def test_what_is_unchanged_is_not_read_again(tmp_path: Path, home: str) -> None:
    write(tmp_path / "lib/a")
    job = JobSpec(ROLES, files=("lib",))
    before = stage(job, tmp_path, home).files
    (tmp_path / "lib/a").chmod(0o000)  # (nobody but root could read it now; its change of mode is seen)
    (tmp_path / "lib/a").chmod(0o644)
    again = stage(job, tmp_path, home).files
    assert before == again
    (tmp_path / "lib/a").write_text("b")
    os.utime(tmp_path / "lib/a", (1, 1))
    assert stage(job, tmp_path, home).files != before


def test_inputs_are_listed_with_their_directories(tmp_path: Path, home: str) -> None:
    for name in ("data/a.csv", "data/x/b.csv", "data/_SUCCESS", "data/.a.crc", "data/_tmp/c", "more/a.csv"):
        write(tmp_path / name)
    inputs = (Input("data"), Input(("data/a.csv", "more")), Input("*/a.csv"), Input("da*"), Input("data/_SUCCESS#one"))
    inputs = (*inputs[:4], replace(inputs[4], allow_empty=True))
    staged = stage(JobSpec(ROLES, inputs=inputs), tmp_path, home).inputs
    assert [[file.name for file in entry.files] for entry in staged] == [
        ["a.csv", "x/b.csv"],
        ["a.csv", "a.csv"],
        ["a.csv", "a.csv"],
        ["data/a.csv", "data/x/b.csv"],
        ["_SUCCESS"],
    ]
    assert staged[0].files[0].uri == uris.of_local(tmp_path / "data/a.csv")
    assert staged[0].files[0].size == 1
    assert staged[0].files[0].modified_ms == (tmp_path / "data/a.csv").stat().st_mtime_ns // 10**6
    assert [entry.to for entry in staged] == ["input"] * 4 + ["one"]
    assert staged[0].uploads == {}


@pytest.mark.parametrize("store", ["", "memory:///years/"])
def test_what_braces_name_must_all_be_there(tmp_path: Path, home: str, store: str) -> None:
    """Half of the data would train without a word. What a `*` may match, nobody knows."""
    for name in ("y/2023/a.csv", "y/2024/b.csv"):
        uri = f"{store or tmp_path.as_uri() + '/'}{name}"
        filesystem(uri).mkdirs(uris.parent(uri))
        filesystem(uri).write_bytes(uri, b"x")
    job = JobSpec(ROLES, inputs=(Input(f"{store}y/{{2023,2024}}"), Input(f"{store}y/202*/*.{{csv,json}}")))
    first, second = stage(job, tmp_path, home).inputs
    assert [file.name for file in first.files] == ["2023/a.csv", "2024/b.csv"]
    assert [file.name for file in second.files] == ["a.csv", "b.csv"]
    path = f"{store}y/{{2023,2024,2025}}"
    with pytest.raises(FilesWrong) as told:
        stage(JobSpec(ROLES, inputs=(Input((f"{store}y/2023", path)),)), tmp_path, home)
    (either,) = stage(JobSpec(ROLES, inputs=(Input(f"{store}y/2023/a{{,.csv}}", share="all"),)), tmp_path, home).inputs
    assert [file.name for file in either.files] == ["a.csv"]
    missing = f"{store}y/2025" if store else tmp_path / "y/2025"
    assert str(told.value) == f"inputs.0.path.1: '{path}': no such file or directory: {missing}"


@pytest.mark.parametrize("store", ["", "memory:///patterns/"])
@pytest.mark.parametrize(
    ("pattern", "names", "said"),
    [
        (
            "out/*",
            ["a/part-0", "part-1"],
            "2 files are left out, as names that begin with _ or . are no data (_extra/)",
        ),
        ("out/[!x]*", ["a/part-0", "part-1"], "2 files are left out"),
        ("{no,out}/*/part-*", ["part-0"], "1 files are left out"),
        ("out/_extra/part-*", ["part-2"], ""),
        ("out/{_extra,a}/part-*", ["part-0", "part-2"], ""),
        ("out/_[A-Z]*", ["_SUCCESS"], ""),
    ],
)
def test_a_pattern_matches_no_hidden_files_that_it_does_not_name(
    tmp_path: Path, home: str, store: str, pattern: str, names: list[str], said: str
) -> None:
    for name in ("a/part-0", "part-1", "_SUCCESS", "_temporary/0/part-1", "_extra/part-2", "_extra/b"):
        uri = f"{store or tmp_path.as_uri() + '/'}out/{name}"
        filesystem(uri).mkdirs(uris.parent(uri))
        filesystem(uri).write_bytes(uri, b"x")
    told: list[str] = []
    (entry,) = stage(
        JobSpec({"worker": Role("x")}, inputs=(Input(store + pattern),)), tmp_path, home, notice=told.append
    ).inputs
    assert sorted(file.name for file in entry.files) == names
    assert [said in line for line in told] == [True] * bool(said)


def test_a_file_named_twice_is_there_once(tmp_path: Path, home: str) -> None:
    write(tmp_path / "data/a")
    job = JobSpec(ROLES, inputs=(Input(("data", "data/*", "data/a"), share="all"),))
    (entry,) = stage(job, tmp_path, home).inputs
    assert [file.name for file in entry.files] == ["a"]


def test_more_tasks_than_files_is_refused_with_the_ways_out(tmp_path: Path, home: str) -> None:
    for name in ("data/a", "data/b"):
        write(tmp_path / name)
    roles = {"worker": Role("true", 5), "ps": Role("true", 2)}
    with pytest.raises(SpecError) as error:
        stage(JobSpec(roles, inputs=(Input("data"), Input("data", share="bytes", chief=0))), tmp_path, home)
    assert str(error.value).splitlines() == [
        f"inputs.{number}.share: has fewer files (2) than tasks (5): {who} and {more} more would have none. Start fewer"
        " tasks, give all files to each with `share: all`, or allow it with `allow_empty: true`"
        for number, who, more in ((0, "worker:2", 2), (1, "worker:3", 1))
    ]
    for fine in (Input("data", share="all"), Input("data", allow_empty=True), Input("data", roles=("ps",))):
        stage(JobSpec(roles, inputs=(fine,)), tmp_path, home)


def test_fewer_tasks_than_asked_for_where_there_are_fewer_files(tmp_path: Path, home: str) -> None:
    for name in ("a", "b"):
        write(tmp_path / "data" / name)
    roles = {"chief": Role("true"), "worker": Role("true", 4, min_replicas=3), "ps": Role("true", 3)}
    job = JobSpec(roles, inputs=(Input("data", fewer_tasks=True),))
    staged = stage(job, tmp_path, home)
    assert {name: (role.replicas, role.min_replicas) for name, role in staged.job.roles.items()} == {
        **{"chief": (1, 0), "worker": (1, 1), "ps": (3, 0)}
    }
    assert list(explain_shortages(job, staged)) == ["data has 2 files: worker starts 1 of 4 tasks"]
    many = replace(job, inputs=(Input("data", fewer_tasks=True, roles=("ps",)),))
    assert {name: role.replicas for name, role in stage(many, tmp_path, home).job.roles.items()} == {
        **{"chief": 1, "worker": 4, "ps": 2}
    }
    alone = replace(job, outputs=(Output("out", tasks="worker:1"),))
    with pytest.raises(SpecError, match=r"outputs\.0\.tasks: is 'worker:1', but there are 1 tasks of worker"):
        stage(alone, tmp_path, home)
    empty = replace(job, inputs=(Input("data", allow_empty=True),))
    staged = stage(empty, tmp_path, home)
    assert staged.job.roles["worker"].replicas == 4
    assert list(explain_shortages(empty, staged)) == ["data has 2 files: 3 tasks get none, the first is worker:1"]


def test_files_of_several_directories_lie_in_one(tmp_path: Path, home: str) -> None:
    for name in ("dt=1/part-0.csv", "dt=2/part-0.csv", "dt=2/part-1.csv", "part-0.csv"):
        write(tmp_path / "data" / name)
    staged = stage(JobSpec({"worker": Role("true")}, inputs=(Input("data", flat=True),)), tmp_path, home)
    (fetch,) = plan_fetches(staged, TaskId("worker", 0))
    assert [file.name for file in fetch.files] == ["part-0.csv", "part-0-2.csv", "part-1.csv", "part-0-3.csv"]


def test_a_name_after_the_path_is_where_it_goes(tmp_path: Path, home: str) -> None:
    for name in ("data/a", "odd#name"):
        write(tmp_path / name)
    inputs = (Input(("data#train", "data/*")), Input("odd#name", to="b"), Input("odd#name#c/d"))
    inputs = tuple(replace(entry, share="all") for entry in inputs)
    staged = stage(JobSpec(ROLES, inputs=inputs), tmp_path, home)
    assert [entry.to for entry in staged.inputs] == [entry.to for entry in staged.job.inputs] == ["train", "b", "c/d"]
    assert [[file.name for file in entry.files] for entry in staged.inputs] == [["a"], ["odd#name"], ["odd#name"]]


def test_everything_missing_is_told_at_once(tmp_path: Path, home: str) -> None:
    for name in ("train.py", "taken/x", "empty/_SUCCESS"):
        write(tmp_path / name)
    job = JobSpec(
        ROLES,
        files=("trian.py", "/nowhere/x"),
        archives=("train.py",),
        inputs=(Input("dta"), Input(("train.py", "no*")), Input("empty")),
        outputs=(Output("taken"), Output("free")),
    )
    with pytest.raises(SpecError) as error:
        stage(job, tmp_path, home, origins={"files.0": "job.yaml:3"})
    assert str(error.value).splitlines() == [
        f"files.0: 'trian.py': no such file: {tmp_path}/trian.py (did you mean 'train.py'?) (job.yaml:3)",
        "files.1: '/nowhere/x': no such file: /nowhere/x",
        "archives.0: 'train.py' is not an archive: its name must end in one of .zip, .tar.gz, .tgz, .tar,"
        " .tar.bz2, .tbz2, .tar.xz, .txz",
        f"inputs.0.path: 'dta': no such file or directory: {tmp_path}/dta",
        f"inputs.1.path.1: 'no*': no such file or directory: {tmp_path}/no*",
        f"inputs.2.path: 'empty' has no files (names that begin with _ or . are skipped): {tmp_path}/empty",
        f"outputs.0.path: {tmp_path}/taken exists already: remove it, choose another, or allow it with overwrite",
    ]


def test_outputs_are_absolute(tmp_path: Path, home: str) -> None:
    write(tmp_path / "taken/x")
    job = JobSpec(ROLES, outputs=(Output("taken"), Output("memory://n/new", overwrite=True)))
    staged = stage(job, tmp_path, home, overwrite=True).job.outputs
    assert [(output.path, output.overwrite) for output in staged] == [
        (uris.of_local(tmp_path / "taken"), True),
        ("memory://n/new", True),
    ]


def test_an_unreadable_directory_is_a_mistake_not_a_crash(tmp_path: Path, home: str) -> None:
    write(tmp_path / "data/a")
    (tmp_path / "data/loop").symlink_to("loop")
    job = JobSpec(ROLES, inputs=(Input("data/loop/x"),))
    with pytest.raises(SpecError, match=r"inputs\.0\.path"):
        stage(job, tmp_path, home)


@pytest.mark.parametrize(("ending", "mode"), [("tar.bz2", "bz2"), ("tbz2", "bz2"), ("tar.xz", "xz"), ("txz", "xz")])
def test_other_compressions_are_sent_as_gzip(tmp_path: Path, home: str, ending: str, mode: str) -> None:
    write(tmp_path / "a.txt", "data")
    with tarfile.open(tmp_path / f"data.{ending}", f"w:{mode}") as tar:
        tar.add(tmp_path / "a.txt", "a.txt")
    (file,) = stage(JobSpec(ROLES, archives=(f"data.{ending}",)), tmp_path, home).files
    assert (file.name, file.kind, file.uri[-7:]) == (f"data.{ending}", "archive", ".tar.gz")
    with tarfile.open(file.source, "r:gz") as tar:
        assert tar.extractfile("a.txt").read() == b"data"
    assert archive_file("env", str(tmp_path / f"data.{ending}"), home).uri == file.uri


@pytest.mark.parametrize("ending", ["tar.bz2", "tar.xz"])
def test_a_damaged_compression_is_named_and_leaves_nothing(tmp_path: Path, home: str, ending: str) -> None:
    write(tmp_path / f"data.{ending}", "no archive")
    with pytest.raises(SpecError, match=rf"archives.0: .*/data.{ending} is damaged, or no archive: "):
        stage(JobSpec(ROLES, archives=(f"data.{ending}",)), tmp_path, home)
    with pytest.raises(StagingError, match=rf"/data.{ending} cannot be unpacked: "):
        archive.with_gzip(tmp_path / f"data.{ending}", tmp_path / "packed")
    assert list((tmp_path / "packed").iterdir()) == []


@pytest.mark.parametrize("ending", ["tar", "tar.gz", "tgz", "zip"])
def test_a_cut_archive_is_told_before_it_is_sent(tmp_path: Path, home: str, ending: str) -> None:
    write(tmp_path / "content/a").write_bytes(random.Random(1).randbytes(50_000))
    kind = {"tar": "tar", "zip": "zip"}.get(ending, "gztar")
    whole = Path(shutil.make_archive(str(tmp_path / "whole"), kind, tmp_path / "content"))
    cut = tmp_path / f"cut.{ending}"
    cut.write_bytes(whole.read_bytes())
    stage(JobSpec(ROLES, archives=(cut.name,)), tmp_path, home)
    cut.write_bytes(whole.read_bytes()[:20_000])
    with pytest.raises(SpecError, match=rf"archives.0: .*/cut.{ending} is damaged"):
        stage(JobSpec(ROLES, archives=(cut.name,)), tmp_path, home)


def test_names_and_depths_that_no_archive_takes_are_told(tmp_path: Path, home: str) -> None:
    write(tmp_path / "code/Icon\r")
    with pytest.raises(SpecError, match=r"files.0: .*Icon.* has a control character in its name"):
        stage(JobSpec(ROLES, files=("code",)), tmp_path, home)
    (tmp_path / "deep" / "/".join("d" * 300)).mkdir(parents=True)
    for job in (JobSpec(ROLES, files=("deep",)), JobSpec(ROLES, inputs=(Input("deep"),))):
        with pytest.raises(SpecError, match=r"lies more than 250 directories deep"):
            stage(job, tmp_path, home)


def test_an_output_at_a_link_to_nothing_is_refused_before(tmp_path: Path, home: str) -> None:
    (tmp_path / "out").symlink_to("nowhere")
    with pytest.raises(SpecError, match=r"outputs.0.path: .*/out is a link to nothing"):
        stage(JobSpec(ROLES, outputs=(Output("out", overwrite=True),)), tmp_path, home)


def test_an_input_that_cannot_be_read_is_told_before(
    tmp_path: Path, home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "data/b")
    monkeypatch.setattr(os, "access", lambda path, _: not str(path).endswith("/data/b"))  # root may read all files
    with pytest.raises(SpecError, match=r"inputs.0.path: .*/data/b: permission denied"):
        stage(JobSpec(ROLES, inputs=(Input("data"),)), tmp_path, home)


def test_a_directory_is_no_packed_environment(tmp_path: Path, home: str) -> None:
    (tmp_path / "ve").mkdir()
    with pytest.raises(FilesWrong, match=r"environment\.archive: .*/ve is a directory; pack it as one of \.zip, "):
        archive_file("env", str(tmp_path / "ve"), home)


def test_environment_archives_are_staged_by_kind(tmp_path: Path, home: str) -> None:
    write(tmp_path / "env.tar.gz")
    write(tmp_path / "env.pex")
    assert archive_file("env", str(tmp_path / "env.tar.gz"), home).kind == "archive"
    pex = archive_file("env", str(tmp_path / "env.pex"), home)
    assert (pex.name, pex.kind) == ("env/bin/python", "file")
    with pytest.raises(SpecError, match=r"environment.archive: .*no such file \(did you mean 'env.pex'\?\)"):
        archive_file("env", str(tmp_path / "evn.pex"), home)


def test_a_large_files_hash_is_remembered_until_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_bytes(bytes(17 << 20))
    first = sha256_of(path)
    assert (
        first
        == sha256_of(path)
        == subprocess.run(["sha256sum", path], capture_output=True, text=True, check=True).stdout.split()[0]
    )
    path.write_bytes(bytes((17 << 20) - 1) + b"1")
    assert sha256_of(path) != first


def test_a_cache_that_may_not_be_written(tmp_path: Path) -> None:
    source = write(tmp_path / "a")
    (tmp_path / "home").write_text("a file is in the way")
    home = uris.of_local(tmp_path / "home")
    digest = sha256_of(source)
    with pytest.raises(StagingError, match=r"home.*"):
        Cache(home).place(StagedFile("a", location(home, digest, "a"), "file", str(source), digest))


def test_outputs_that_are_one_place_are_refused_before(tmp_path: Path, home: str) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    for outputs, other in (
        ((Output("real/o"), Output("link/o")), "outputs.1.path"),
        ((Output("link/o/p"), Output("real/o")), "outputs.1.path"),
        ((Output("real/o"), Output("real/o.saved")), "outputs.0.save"),
        ((Output("real/o", keep_failed=True), Output("real/o.failed/x")), "outputs.0.path"),
    ):
        with pytest.raises(SpecError, match=rf"which is, holds or lies in {other} \("):
            stage(JobSpec(ROLES, outputs=outputs), tmp_path, home)
    stage(JobSpec(ROLES, outputs=(Output("real/o"), Output("link/p"))), tmp_path, home)


def test_an_output_whose_failed_one_would_have_too_long_a_name_is_refused_before(tmp_path: Path, home: str) -> None:
    job = JobSpec({"worker": Role("x")}, outputs=(Output("k" * 249, keep_failed=True),))
    expected = "outputs.0.path: has a name of 249 bytes, must be at most 248: what a failed job has made is kept at"
    with pytest.raises(SpecError, match=f"^{expected} <path>.failed$"):
        stage(job, tmp_path, home)
    stage(replace(job, outputs=(Output("k" * 248, keep_failed=True),)), tmp_path, home)
    stage(replace(job, outputs=(Output("k" * 255),)), tmp_path, home)


def test_what_is_hidden_is_told_in_one_line(tmp_path: Path, home: str) -> None:
    for name in (
        *("yes/a.wav", "_background_noise_/1.wav", "_background_noise_/2.wav", ".DS_Store", "no/_x", "no/_y", "no/b"),
        *("_SUCCESS", "._SUCCESS.crc", "_temporary/0/part", "_metadata", "_committed_12", ".hive-staging_1/p"),
        ".part-0.0123abcd.part",
    ):
        write(tmp_path / "speech" / name)
    said: list[str] = []
    job = JobSpec(ROLES, inputs=(Input("speech", "data"),))
    stage(job, tmp_path, home, notice=said.append)
    assert said == [
        f"{tmp_path}/speech: 5 files are left out, as names that begin with _ or . are no data"
        " (_background_noise_/, no/_x, no/_y, …): what the job needs of them must be an input of its own"
    ]
    shutil.rmtree(tmp_path / "speech/_background_noise_")
    for name in (".DS_Store", "no/_x", "no/_y"):
        (tmp_path / "speech" / name).unlink()
    stage(job, tmp_path, home, notice=said.append)
    assert len(said) == 1
