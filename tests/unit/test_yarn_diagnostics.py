"""Tests shortening the long messages of a real ResourceManager (Hadoop 3.5.0) for people."""

from __future__ import annotations

from howdah.engines.yarn.diagnostics import clean, explain_wait

ACTIVATED = (
    "[Sat Nov 21 12:57:17 +0000 2026] Application is Activated, waiting for resources to be assigned for AM.  "
    "Last Node which was processed for the application : n3:28088 ( Partition : [], Total resource : "
    "<memory:8192, vCores:8, yarn.io/gpu: 4>, Available resource : <memory:1024, vCores:4, yarn.io/gpu: 4> ). "
    "Details : AM Partition = <DEFAULT_PARTITION> ; Partition Resource = <memory:24576, vCores:24, yarn.io/gpu: 12> ; "
    "Queue's Absolute capacity = 50.0 % ; "
)
EXCEEDED = (
    "[Sat Nov 21 12:57:32 +0000 2026] Application is added to the scheduler and is not yet activated. Queue's AM "
    "resource limit exceeded.  Details : AM Partition = <DEFAULT_PARTITION>; AM Resource Request = "
    "<memory:5120, vCores:1>; Queue Resource Limit for AM = <memory:12288, vCores:12, yarn.io/gpu: 6>; User AM "
    "Resource Limit of the queue = <memory:12288, vCores:12, yarn.io/gpu: 6>; "
    "Queue AM Resource Usage = <memory:10240, vCores:2>; "
)

DIED = (
    "Application application_1_0019 failed 1 times (global limit =3; local limit is =1) due to AM Container for "
    "appattempt_1_0019_000001 exited with  exitCode: {status}\nFailing this attempt.Diagnostics: "
    "[2026-11-21 13:02:23.828]{reason}\nFor more detailed output, check the application tracking page: "
    "http://rm:8088/cluster/app/application_1_0019 Then click on links to logs of each attempt.\n"
    ". Failing the application."
)
LAUNCH = (
    "Exception from container-launch.\nContainer id: container_1_0019_01_000001\nExit code: 127\n"
    "[2026-11-21 13:02:23.829]Container exited with a non-zero exit code 127. Error file: prelaunch.err.\n"
    "Last 4096 bytes of prelaunch.err :\nLast 4096 bytes of stderr :\n"
    "/bin/bash: line 1: /opt/python3: No such file or directory\n"
)


def test_a_master_that_died_is_a_sentence_of_its_own() -> None:
    said = clean(DIED.format(status=127, reason=LAUNCH))
    assert said == ("the job's master ended: exit code 127: /bin/bash: line 1: /opt/python3: No such file or directory")
    assert explain_wait(DIED.format(status=127, reason=LAUNCH), "q") == said
    killed = DIED.format(status=137, reason="Container killed on request. Exit code is 137\nKilled by external signal")
    assert clean(killed) == "the job's master ended: killed by signal 9 (often the kernel, out of memory)"


def test_room_is_waited_for() -> None:
    assert explain_wait(ACTIVATED, "root.prod") == "waiting for the master's container in queue root.prod"


def test_the_reason_of_a_limit_is_kept() -> None:
    assert explain_wait(EXCEEDED, "root.default") == (
        "waiting for the master's container in queue root.default: Queue's AM resource limit exceeded "
        "(asks <memory:5120, vCores:1>, limit <memory:12288, vCores:12, yarn.io/gpu: 6>, "
        "of this user <memory:12288, vCores:12, yarn.io/gpu: 6>, in use <memory:10240, vCores:2>)"
    )


def test_other_reasons_are_kept() -> None:
    added = "Application is added to the scheduler and is not yet activated. "
    text = added + "Skipping AM assignment as cluster resource is empty.  Details : AM Partition = x"
    assert explain_wait(text, "q").endswith("in queue q: Skipping AM assignment as cluster resource is empty")
    assert explain_wait("Something nobody has seen.", "q").endswith("in queue q: Something nobody has seen")
    assert explain_wait("", "q") == ""


def test_the_master_is_on_its_way() -> None:
    launched = "[Sat Nov 21 12:57:17 +0000 2026] AM container is launched, waiting for AM container to Register with RM"
    assert explain_wait(launched, "q") == "the master is starting"


def test_noise_is_removed() -> None:
    assert clean("Attempt recovered after RM restartall\n\nfine\n") == "all\nfine"
