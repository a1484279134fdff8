"""Lists the keys of XLearning's and HBox's configuration, without their prefix: those that are read, and those that
have no effect here.

If the documents and the code of those systems spell a key differently, both spellings are read.
"""

from __future__ import annotations

import re

from howdah.compat.xlearning.options import OPTIONS

PREFIXES = ("hbox.", "xlearning.")
# The spelling that is read, by the other one.
SPELLINGS = {
    "am.memory": "driver.memory",
    "am.cores": "driver.cores",
    "docker.image": "docker.image.name",
    "interresult.save.inc": "interresult.upload.inc",
    "mode.single": "tf.mode.single",
    "mpi.extra.ld.library.path": "mpi.extra.ld.lirbary.path",
    "horovod.extra.ld.library.path": "horovod.extra.ld.lirbary.path",
    "node.label": "job.labelname",
    "worker.gcores": "worker.gpus",
    "ps.gcores": "ps.gpus",
}
# Texts that have no option.
TEXTS = (
    *("job.labelname", "am.nodeLabelExpression", "worker.nodeLabelExpression", "ps.nodeLabelExpression"),
    *("host.blacklist", "output.local.dir", "interresult.dir", "remote.defaultFS", "container.mode"),
    *("s3.cluster", "s3.cluster.prefix", "s3.bucket.dir.split", "s3.key.access", "s3.key.secret"),
    *("docker.registry.host", "docker.registry.port", "digits.image-name", "mpi.install.dir"),
    *("mpi.extra.ld.lirbary.path", "horovod.extra.ld.lirbary.path"),
    *("horovod.timeline", "horovod.fusion.threshold", "horovod.cycle.time"),
)
# Keys without the prefix that are read, too.
UNPREFIXED = {
    "yarn.nodemanager.docker-container-executor.image-name": "docker.executor.image",
    "yarn.nodemanager.container-executor.type": "container.mode",
}
# Keys for what does not exist here (a JVM in every container, polling, sockets, servers of those systems), or needs no
# setting.
NEEDLESS = re.compile(
    r"app\.id|cluster\.name|staging\.dir|log\.pull\.interval|container\.jvm\..*|container\.mem\.usage\.warn\.fraction"
    r"|cachefile\.check\.enable|inputfile\.rename|env\.maxlength|container\.extra\.java\.opts|allocate\.interval"
    r"|status\.update\.interval|task\.timeout(\.check\.interval)?|inputformat\.cachesize\.limit"
    r"|inputformat\.cachefile\.name|inputformat\.cache|inputmat\.cache|interresult\.upload\.timeout|messages\.len\.max|execute\.node\.limit"
    r"|cleanup\.enable|container\.running\.log\.enable|download\.file\.(retry|thread\.nums)"
    r"|upload\.file\.thread\.nums|upload\.output\.thread\.nums|file\.list\.level|container\.heartbeat\..*"
    r"|container\.update\.appstatus\..*|report\.container\.status"
    r"|local\.resource\.visibility|history\..*|webapp\..*|cluster\.delegation\..*"
    r"|nodemanager\.webapp\.port|mpi\.container\.update\.status\.retry|client\.hostname|client\.log\.collect"
    r"|log\.sampling|tf\.board\.(upload|path|ps\.enable)|board\.path|mpi\.exec\.dir(\.enable)?|am\.env\..*"
    r"|.*\.history\.webapp\.address|docker\.work(er)?\.dir|append\.defaultfs\.enable|commom\.cache\.archive\.hdfs"
)
# Keys that ask for something impossible, with what to do instead.
REFUSED = {
    "am.cmd": "the master runs no command of yours: make it a role of a job file",
    "am.cmd.enable": "the master runs no command of yours: make it a role of a job file",
    "docker.run.args": "YARN starts containers itself: its administrator allows mounts and networks",
    "docker.num.per.worker": "YARN starts one container for each worker: raise --worker-num",
    "container.extraEnv": "write one `--conf {prefix}container.env.NAME=VALUE` for each variable",
    "python.home": "name a Python by `howdah config set environment`",
    "custom.exit": "the exit status is the program's own",
    "commom.cache.archive.hdfs.convert.enable": "cached archives are on HDFS already: --cacheArchive",
    "cached.mpi.package.remote.path": "ship Open MPI by --cacheArchive PATH#openmpi",
}
HARMLESS = {"am.cmd.enable": "false", "commom.cache.archive.hdfs.convert.enable": "false", "docker.num.per.worker": "0"}
"""The values of refused keys that request nothing."""
VARIABLE = "container.env."
"""The beginning of keys that set a variable of every task."""

# Keys by the form of their value; all others are texts.
FLAGS = (
    *("input.stream", "out.stream", "input.stream.shuffle", "inputfile.rename", "createcontainerid.dir"),
    *("tf.evaluator", "tf.board.enable", "user.classpath.first", "host.local.enable", "chief.worker.minimum.data"),
    *("placeholder.whole.enable", "tf.input.ps.enable", "tf.mode.single", "mxnet.mode.single"),
    *("tf.distribution.strategy", "failed.upload", "interresult.upload.inc", "container.auto.create.output.dir"),
    *("mpi.install.dir.enable", "horovod.stall.check.disable", "horovod.hierarchical.allreduce"),
    "horovod.mpi.threads.disable",
)
MEMORIES = (
    *("driver.memory", "worker.memory", "ps.memory", "chief.worker.memory", "evaluator.worker.memory"),
    "memory.overhead.minimum",
)
FRACTIONS = ("memory.overhead.fraction", "worker.mem.autoscale", "ps.mem.autoscale", "container.maxFailures.rate")
NUMBERS = (
    *("driver.cores", *(f"{role}.{size}" for role in ("worker", "ps") for size in ("cores", "gpus", "num"))),
    *("stream.epoch", "output.index", "tf.board.worker.index", "tf.board.reload.interval", "board.cache.timeout"),
    *("app.max.attempts", "job.exec.timeout", "localresource.timeout", "chief.worker.minimum.file.num"),
    *("interresult.upload.interval", "horovod.process.num.per.worker", "reserve.port.begin", "reserve.port.end"),
)
CHOICES = {
    "input.strategy": ("DOWNLOAD", "PLACEHOLDER", "STREAM"),
    "output.strategy": ("UPLOAD", "STREAM"),
    "container.type": ("YARN", "DOCKER"),
}
"""The possible values, in capital or small letters; the first is the default."""

KNOWN = {key for key in OPTIONS.values() if "." in key}
KNOWN |= {*TEXTS, *FLAGS, *MEMORIES, *FRACTIONS, *NUMBERS, *CHOICES}


def canonical_key(key: str) -> str | None:
    """Return `key` without its prefix and in the spelling that is read; None for a key of another system."""
    for prefix in PREFIXES:
        if key.startswith(prefix):
            bare = key[len(prefix) :]
            return SPELLINGS.get(bare, bare)
    return UNPREFIXED.get(key)
