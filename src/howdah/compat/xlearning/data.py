"""Makes the inputs, outputs and files of an XLearning job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from howdah.compat.xlearning.app_types import TENSORFLOWS
from howdah.compat.xlearning.roles import JobRoles
from howdah.compat.xlearning.settings import PAGE, XLearningSettings
from howdah.compat.xlearning.tensorboard import log_directory
from howdah.spec import Input, Output, Save

INPUT_STRATEGIES = {"DOWNLOAD": "download", "PLACEHOLDER": "placeholder", "STREAM": "stream"}
OUTPUT_STRATEGIES = {"UPLOAD": "upload", "STREAM": "stream"}
SECRETS = {"s3.key.access": "AWS_ACCESS_KEY_ID", "s3.key.secret": "AWS_SECRET_ACCESS_KEY"}


def files(settings: XLearningSettings) -> tuple[str, ...]:
    """Return --files of this machine, --cacheFile of the cluster, and --jars of either."""
    return (*settings.get_list("files"), *_on_cluster(settings, "cacheFile"), *settings.get_list("jars"))


def archives(settings: XLearningSettings) -> tuple[str, ...]:
    """Return --archiveFiles of this machine, and --cacheArchive of the cluster."""
    return (*settings.get_list("archiveFiles"), *_on_cluster(settings, "cacheArchive"))


def inputs(settings: XLearningSettings, job_roles: JobRoles, kind: str, fewer_workers: bool) -> tuple[Input, ...]:
    """Return one input for each directory: the files of all paths of one option with the same directory are divided
    together. If there are more workers than files, XLearning started fewer workers (`fewer_workers`), HBox as many as
    asked for."""
    strategy = INPUT_STRATEGIES[settings.choice("input.strategy")]
    strategy = "stream" if settings.flag("input.stream") else strategy
    together: dict[tuple[str, str], list[str]] = {}
    for option, to, paths in (*_paths(settings, "input"), *_paths(settings, "s3input")):
        parts = [part.strip() for part in paths.split(",") if part.strip()]
        together.setdefault((option, to), []).extend(_uri(settings, option, path) for path in parts)
    whole = strategy == "placeholder" and settings.flag("placeholder.whole.enable")
    chief_files = settings.number("chief.worker.minimum.file.num", 1)
    common = Input(
        path="",
        roles=_readers(settings, job_roles, kind),
        share="all" if whole else "split",
        strategy=strategy,
        chief=chief_files if settings.flag("chief.worker.minimum.data") else None,
        allow_empty=not fewer_workers or strategy == "stream",
        fewer_tasks=fewer_workers and not whole and strategy != "stream",
    )
    found = [
        replace(
            common,
            path=tuple(paths) if len(paths) != 1 else paths[0],
            to=to,
            flat=strategy == "download" and option == "input",  # a file of a bucket is named by its whole key
        )
        for (option, to), paths in together.items()
    ]
    if strategy == "stream" and len(found) > 1:
        settings.notes.append(f"--input-strategy STREAM: {found[0].to!r} alone is streamed, as it was ({PAGE})")
    return tuple(_streamed_input(settings, entry) for entry in found[:1]) if strategy == "stream" else tuple(found)


def _readers(settings: XLearningSettings, job_roles: JobRoles, kind: str) -> tuple[str, ...]:
    servers = ("ps",) if "ps" in job_roles.roles and settings.flag("tf.input.ps.enable") and kind in TENSORFLOWS else ()
    readers = (*job_roles.trainers, *servers)
    return () if set(job_roles.roles) - {"ps", "evaluator"} == set(readers) else readers


def _streamed_input(settings: XLearningSettings, entry: Input) -> Input:
    format_, options = _format(settings, "inputformat.class")
    return replace(
        entry,
        to=Input.to,  # a stream has no directory
        format=format_,
        options=options,
        epochs=settings.number("stream.epoch", 1),
    )


def _format(settings: XLearningSettings, key: str) -> tuple[str, Mapping[str, str]]:
    """Return the format for a class of Hadoop that reads or writes it, and its options."""
    name = settings.text(key)
    if not name:
        return "text", {}
    from howdah.inputs.formats.hadoop_classes import from_hadoop_class  # few jobs name one

    try:
        return from_hadoop_class(name)
    except ValueError as error:
        settings.wrong(key, str(error))
        return "text", {}


def directories(settings: XLearningSettings, boards: bool) -> tuple[str, ...]:
    """Return the directories that both systems made in each container before the program started: those of the outputs,
    and TensorBoard's, unless it was switched off (`boards`: it was on by default)."""
    if not settings.flag("container.auto.create.output.dir", True):
        return ()
    streamed = settings.choice("output.strategy") == "STREAM" or settings.flag("out.stream")
    found = [] if streamed else [to for option in ("output", "s3output") for _, to, _ in _paths(settings, option)]
    logs, is_on_cluster = log_directory(settings)
    if settings.flag("tf.board.enable", boards) and not is_on_cluster:
        found.append(logs)
    return tuple(dict.fromkeys(found))


def outputs(settings: XLearningSettings, job_roles: JobRoles, saved: str) -> tuple[Output, ...]:
    """Return the outputs; the names of saved models begin with `saved` if nothing else is set."""
    strategy = OUTPUT_STRATEGIES[settings.choice("output.strategy")]
    strategy = "stream" if settings.flag("out.stream") else strategy
    writer = _only_writer(settings, job_roles)
    servers = job_roles.roles.get("ps")
    if strategy == "stream" and servers is not None and servers.tracked:  # they are awaited, and print no records
        (readers,) = job_roles.trainers
    else:
        readers = ""
    prefix = settings.text("interresult.dir", saved).lstrip("/")
    format_, options = _format(settings, "outputformat.class") if strategy == "stream" else ("text", {})
    found = []
    for option, source, text in (*_paths(settings, "output"), *_paths(settings, "s3output")):
        path = _uri(settings, option, text)
        save = Save(
            every_s=settings.number("interresult.upload.interval", 0) / 1000,
            to=f"{path.rstrip('/')}.saved/{prefix}",
            incremental=settings.flag("interresult.upload.inc"),
        )
        found.append(
            Output(
                path=f"{path.rstrip('/')}/{source}" if writer else path,
                source=source if strategy == "upload" else Output.source,
                tasks=writer or readers,
                strategy=strategy,
                format=format_,
                options=options,
                keep_failed=settings.flag("failed.upload"),
                save=save if strategy == "upload" else Save(),
                optional=strategy == "upload",  # a directory that did not exist was no error
            )
        )
    return tuple(found)


def _only_writer(settings: XLearningSettings, job_roles: JobRoles) -> str:
    """Return the only task whose output is kept, "" if all outputs are kept."""
    if settings.number("output.index", -1) >= 0:
        return job_roles.trainer(settings, "output.index")
    alone = job_roles.trainer_names if len(job_roles.trainer_names) == 1 else [""]
    return "" if settings.flag("createcontainerid.dir", True) else alone[0]


def _paths(settings: XLearningSettings, option: str) -> Iterator[tuple[str, str, str]]:
    """Yield option, local directory and path of every `path#directory`."""
    default = settings.text("output.local.dir", "output") if option.endswith("output") else "input"
    for value in settings.options.values.get(option, []):
        path, _, directory = value.partition("#")
        yield option, directory.strip() or default, path.strip()


def _uri(settings: XLearningSettings, option: str, path: str) -> str:
    """Return the URI of a path: in a bucket for --s3input and --s3output, otherwise on the file system that is set."""
    if option.startswith("s3"):
        bucket, _, prefix = path.lstrip("/").partition(settings.text("s3.bucket.dir.split", "/"))
        return path if "://" in path else f"s3://{bucket}/{prefix}" if prefix else f"s3://{bucket}"
    default = settings.text("remote.defaultFS").rstrip("/")
    return f"{default}{path}" if default and path.startswith("/") else path


def variables(settings: XLearningSettings) -> Mapping[str, str]:
    """Return the variables that say where the S3 buckets are."""
    cluster = settings.text("s3.cluster")
    if not cluster:
        return {}
    prefix = settings.text("s3.cluster.prefix", "http://")
    return {"AWS_ENDPOINT_URL": cluster if "://" in cluster else f"{prefix}{cluster}"}


def secrets(settings: XLearningSettings) -> Mapping[str, str]:
    """Return the keys of S3 by their variables; they are no part of a job."""
    return {variable: settings.text(key) for key, variable in SECRETS.items() if settings.given(key)}


def _on_cluster(settings: XLearningSettings, key: str) -> list[str]:
    """Return files of the cluster. A relative path is a mistake, because it would mean a file of this machine."""
    entries = settings.get_list(key)
    for entry in entries:
        if "://" not in entry and not entry.startswith("/"):
            settings.wrong(key, f"is {entry!r}, must be a path on the cluster: /… or hdfs://…")
    return [_uri(settings, key, entry) for entry in entries]
