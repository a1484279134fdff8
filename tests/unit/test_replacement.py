"""Tests that no output replaces what the job reads, its code or checkpoints, or a directory that holds such things."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from howdah.errors import SpecError
from howdah.spec import Board, Checkpoint, Environment, Input, JobSpec, Output, Role, Save, uris
from howdah.spec.job import SUCCESS
from howdah.staging.stage import stage
from howdah.storage.local import LocalFileSystem
from howdah.storage.published import FAILED, begin_mark

ROLES = {"worker": Role("true")}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A job file's directory, with data, code and links, in a person's home."""
    for name in ("project/data/train/a.csv", "project/data/README", "project/src/lib/a.py", "project/old/model/w"):
        path = tmp_path / "person" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("precious")
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    monkeypatch.setenv("HOWDAH_HOME", str(tmp_path / "howdah"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "person" / "project"


def staged(project: Path, output: str, **job: Any) -> None:
    job = {"roles": ROLES, **job, "outputs": (*job.get("outputs", ()), Output(output, overwrite=True))}
    stage(JobSpec(**job), project, uris.of_local(project.parents[1] / "howdah"))


def refused(project: Path, output: str, **job: Any) -> str:
    with pytest.raises(SpecError) as error:
        staged(project, output, **job)
    (line,) = str(error.value).splitlines()
    return line


DATA = {"inputs": (Input("data/train"),)}


@pytest.mark.parametrize("output", ["data", "data/train", "data/train/../../data", "linked", "linked/train", "."])
def test_an_input_stays_under_every_name(project: Path, output: str) -> None:
    (project / "linked").symlink_to("data")
    assert "inputs.0.path" in refused(project, output, **DATA)


def test_an_input_that_is_named_by_a_link_stays(project: Path) -> None:
    (project / "linked").symlink_to("data/train")
    line = refused(project, "data", inputs=(Input("linked"),))
    assert line == (f"outputs.0.path: would replace {project}/data, which holds inputs.0.path ({project}/linked)")


@pytest.mark.parametrize("path", ["data", "data/*", "data/tr*/*.csv"])
def test_files_of_an_input_stay(project: Path, path: str) -> None:
    assert "which is inputs.0.path" in refused(project, "data/train", inputs=(Input(path),))


@pytest.mark.parametrize(
    ("output", "job", "named"),
    [
        ("src", {"files": ("src/lib#lib",)}, "holds files.0"),
        ("src/lib", {"files": ("src",)}, "lies in files.0"),
        ("src", {"environment": Environment(requirements="src/lib/a.py")}, "holds environment.requirements"),
        ("src", {"environment": Environment(archive="src/lib/env.tar.gz#env")}, "holds environment.archive"),
        ("old", {"checkpoint": Checkpoint("old/model")}, "holds checkpoint.path"),
        ("old/model", {"checkpoint": Checkpoint("old")}, "lies in checkpoint.path"),
        ("old/model", {"board": Board("old")}, "lies in board.path"),
        ("old", {"outputs": (Output("{project}/old/next"),)}, "holds outputs.0.path"),
        ("data", {"roles": {"worker": Role("train --data={project}/data/train")}}, "holds roles.worker.command"),
        ("data", {"env": {"DATA": "{project}/data"}}, "is env"),
        ("data", {"roles": {"worker": Role("cat ~/project/data/train/a.csv")}}, "holds roles.worker.command"),
        ("data", {"roles": {"worker": Role("cat $HOME/project/data/*")}}, "holds roles.worker.command"),
        ("data", {"roles": {"worker": Role("cat '${HOME}/project/data'")}}, "is roles.worker.command"),
        ("src/lib", {"environment": Environment(requirements="requirements.txt")}, "is environment.requirements"),
        ("data", {"secrets": {"KEY": "file:{project}/data/README"}}, "holds secrets.KEY"),
        ("..", {}, "holds the job file's directory"),
        ("../../howdah", {}, "is where howdah keeps its jobs"),
        ("../../howdah/jobs", {}, "lies in where howdah keeps its jobs"),
        ("/", {}, "the file system's own"),
        ("data/README", {}, "a file; an output is a directory"),
    ],
)
def test_what_the_job_names_stays(project: Path, output: str, job: dict[str, Any], named: str) -> None:
    (project.parents[1] / "howdah/jobs/j").mkdir(parents=True)
    (project / "requirements.txt").write_text("./src/lib\n")
    assert named in refused(project, output, **_at(project, job))


def _at(project: Path, value: Any) -> Any:
    """Complete `{project}` in the strings of a job."""
    if isinstance(value, str):
        return value.replace("{project}", str(project))
    if isinstance(value, dict):
        return {key: _at(project, each) for key, each in value.items()}
    if isinstance(value, tuple):
        return tuple(_at(project, each) for each in value)
    if isinstance(value, Role):
        return Role(_at(project, value.command))
    return Output(_at(project, value.path)) if isinstance(value, Output) else value


def test_a_home_directory_stays(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(project / "old/model"))
    assert "holds your home directory" in refused(project, "old")


def test_what_a_job_has_published_is_replaced(project: Path) -> None:
    staged(project, "old", **DATA)
    mentioned = {"worker": Role(f"train --resume {project}/src/lib/a.py")}
    (project / "src/lib/_SUCCESS").touch()  # as Spark does
    assert "no job of howdah's has published it" in refused(project, "src/lib", files=("src",))
    assert "which holds roles.worker.command" in refused(project, "src/lib", roles=mentioned)
    (project / "src/lib/_SUCCESS").unlink()
    begin_mark(LocalFileSystem(), uris.of_local(project / "src/lib"), SUCCESS)
    staged(project, "src/lib", files=("src",), roles=mentioned)
    staged(project, "new", files=("src",), **DATA)


def test_what_is_as_its_name_begins_is_replaced(project: Path) -> None:
    (project / "dat").mkdir()
    (project / "data/train-old/x").mkdir(parents=True)
    staged(project, "dat", **DATA)
    staged(project, "data/train-old", **DATA)


def test_what_a_failed_job_has_left_stays_where_it_is_an_input(project: Path) -> None:
    home = uris.of_local(project.parents[1] / "howdah")
    (project / "out.failed").mkdir()
    (project / "out.failed/w").touch()
    begin_mark(LocalFileSystem(), uris.of_local(project / "out.failed"), FAILED)
    failed = str(project / "out.failed")
    cases: dict[str, tuple[Output, ...]] = {
        "keep_failed": (Output("out", keep_failed=True),),
        "path": (Output("out"), Output("other")),  # kept where the other is missing
    }
    for key, outputs in cases.items():
        with pytest.raises(SpecError) as error:
            stage(JobSpec(ROLES, inputs=(Input("out.failed"),), outputs=outputs), project, home)
        place = f"outputs.0.{key}"
        assert str(error.value) == f"{place}: would replace {failed}, which is inputs.0.path ({failed})"
        stage(JobSpec(ROLES, inputs=(Input("data"),), outputs=outputs), project, home)
    stage(JobSpec(ROLES, inputs=(Input("out.failed"),), outputs=(Output("out"),)), project, home)


@pytest.mark.parametrize("to", ["saved/", "saved/of-", ""])
@pytest.mark.parametrize("path", ["{directory}", "{snapshot}", "{snapshot}/w", "last"])
def test_a_snapshot_stays_where_it_is_an_input(project: Path, to: str, path: str) -> None:
    home = uris.of_local(project.parents[1] / "howdah")
    directory = to.rpartition("/")[0] or "out.saved"
    names = [f"{directory}/{to.rpartition('/')[2]}2026_11_{day}_10_00_00" for day in ("20", "21")]
    for name in names:
        (project / name).mkdir(parents=True)
        (project / name / "w").touch()
    (project / "last").symlink_to(names[1])
    inputs = (Input(path.format(directory=directory, snapshot=names[1])),)
    with pytest.raises(SpecError) as error:
        stage(JobSpec(ROLES, inputs=inputs, outputs=(Output("out", save=Save(to=to, keep=1)),)), project, home)
    lines = str(error.value).splitlines()
    assert len(lines) == (2 if path == "{directory}" else 1)
    assert f"outputs.0.save.keep: would remove {project}/{names[1]}, which " in lines[-1]
    stage(JobSpec(ROLES, inputs=inputs, outputs=(Output("out", save=Save(to=to)),)), project, home)
    others = (Output("out", save=Save(to="elsewhere/", keep=1)),)
    stage(JobSpec(ROLES, files=(".",), inputs=inputs, outputs=others), project, home)
    stage(JobSpec(ROLES, files=(".",), outputs=(Output("out", save=Save(to=to, keep=1)),)), project, home)


@pytest.mark.parametrize("link", ["src/lib/weights -> ../../old/model", "src/w -> ../old/model/w", "old -> there"])
@pytest.mark.parametrize("kind", ["files", "files of a uri", "inputs"])
def test_what_links_in_code_and_inputs_lead_to_stays(project: Path, link: str, kind: str) -> None:
    name, _, target = link.partition(" -> ")
    if name == "old":  # one link leads on to another
        (project / "old").rename(project / "there")
        (project / "lib2").mkdir()
        (project / "lib2/w").symlink_to("../old/model/w")
        (project / "src/lib2").symlink_to("../lib2")
    (project / name).symlink_to(target)
    model = project / "old/model"
    begin_mark(LocalFileSystem(), uris.of_local(model), SUCCESS)
    job: dict[str, Any] = {"inputs": (Input("src"),)}
    if kind != "inputs":
        job = {"files": (uris.of_local(project / "src") if "uri" in kind else "src",)}
    line = refused(project, "old/model", **job)
    assert f"outputs.0.path: would replace {model}, which " in line
    assert f" {next(iter(job))}.0" in line
    (project / "src/.howdahignore").write_text("weights\nw\nlib2\n")
    if kind == "files":
        staged(project, "old/model", **job)


def test_what_links_in_a_local_package_lead_to_stays(project: Path) -> None:
    (project / "src/lib/weights").symlink_to("../../old/model")
    (project / "requirements.txt").write_text("./src/lib\n")
    begin_mark(LocalFileSystem(), uris.of_local(project / "old/model"), SUCCESS)
    line = refused(project, "old/model", environment=Environment(requirements="requirements.txt"))
    assert f"outputs.0.path: would replace {project}/old/model, which is environment.requirements" in line


def _stored(project: Path, path: str, **job: Any) -> str:
    """Stage a job with a local checkpoint and one with a local board there; return what is wrong with both."""
    found = set()
    for place, kept in (("checkpoint", Checkpoint(path, local="l")), ("board", Board(path, local="l"))):
        try:
            stage(
                JobSpec(**{"roles": ROLES, place: kept, **job}), project, uris.of_local(project.parents[1] / "howdah")
            )
            found.add("")
        except SpecError as error:
            found.add(str(error).removeprefix(f"{place}.path: "))
    (problem,) = found
    return problem


@pytest.mark.parametrize(
    ("path", "job", "named"),
    [
        ("src", {"files": ("src",)}, "is {project}/src, which is files.0 ({project}/src)"),
        ("linked", {"files": ("src/lib#lib",)}, "is {project}/linked, which holds files.0 ({project}/src/lib)"),
        ("linked", {"inputs": (Input("src"),)}, "is {project}/linked, which is inputs.0.path"),
        (".", {}, "is {project}, which is the job file's directory"),
        ("..", {}, "which holds the job file's directory"),
    ],
)
def test_what_a_task_writes_is_not_stored_among_what_the_job_reads(
    project: Path, path: str, job: dict[str, Any], named: str
) -> None:
    (project / "linked").symlink_to("src")
    assert named.replace("{project}", str(project)) in _stored(project, path, **job)


def test_what_a_task_writes_is_stored_beside_code_and_where_it_was_stored(project: Path) -> None:
    assert _stored(project, "src/lib", files=("src",)) == ""
    assert _stored(project, "old", inputs=(Input("old/model/w"),)) == ""
    assert _stored(project, "old/model", inputs=(Input("old/model/w"),)) == "", "beside the weights it begins with"
    assert _stored(project, "old/model", roles={"worker": Role(f"train --from {project}/old/model")}) == ""
    both = JobSpec(ROLES, checkpoint=Checkpoint("old", local="c"), board=Board("old/model", local="b"))
    stage(both, project, uris.of_local(project.parents[1] / "howdah"))
    in_place = JobSpec(ROLES, checkpoint=Checkpoint("src"), files=("src",))  # the program itself writes there
    stage(in_place, project, uris.of_local(project.parents[1] / "howdah"))
