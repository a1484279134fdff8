"""Tests which keys of a job the page's summary of the spec shows as set, and which defaults beside them."""

from __future__ import annotations

from page_script import called

from howdah.spec import JobSpec, Output
from howdah.spec.job_file_keys import default_values

DEFAULTS = {"retries": 0, "timeouts.stop": "10s", "timeouts.gang": "1h", "checkpoint.every": "30s"}


def fields(name: str, *arguments: object) -> dict[str, str]:
    (found,) = called("job/specFields.ts", name, [list(arguments)])
    return {field["path"]: field["value"] for field in found}


def test_keys_that_are_set_are_shown_with_the_records_around_them() -> None:
    record = {"timeouts": {"stop": "5s"}, "files": ["a.py", "b.py"], "gang": False, "env": {"A": "1"}, "roles": {}}
    assert fields("setFields", record, ["roles"]) == {
        **{"timeouts.stop": "5s", "files": "a.py\nb.py", "gang": "false", "env.A": "1"}
    }


def test_a_list_of_records_is_numbered() -> None:
    assert fields("setFields", {"inputs": [{"path": "a"}, {"path": ["b", "c"]}]}) == {
        "inputs.0.path": "a",
        "inputs.1.path": "b\nc",
    }


def test_defaults_are_those_of_keys_that_are_not_set() -> None:
    assert fields("defaultFields", {"timeouts": {"stop": "5s"}}, DEFAULTS) == {"retries": "0", "timeouts.gang": "1h"}
    assert fields("defaultFields", {"retries": 2}, DEFAULTS, ["timeouts"]) == {}


def test_defaults_of_a_checkpoint_are_shown_where_there_is_one() -> None:
    assert "checkpoint.every" not in fields("defaultFields", {}, DEFAULTS)
    assert fields("defaultFields", {"checkpoint": {"path": "/c"}}, DEFAULTS)["checkpoint.every"] == "30s"


def test_a_zero_that_means_no_limit_says_so() -> None:
    assert fields("defaultFields", {}, {"timeouts.run": 0, "timeouts.grace": 0}) == {
        "timeouts.run": "无限制",
        "timeouts.grace": "0",
    }
    assert fields("setFields", {"timeouts": {"stall": 0}, "retries": 0}) == {"timeouts.stall": "无限制", "retries": "0"}


def test_a_zero_that_leaves_it_to_the_engine_is_no_default() -> None:
    assert not [path for path in default_values(JobSpec) if path.startswith("master.")]
    assert "save.every" not in default_values(Output)
