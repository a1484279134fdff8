"""The keys of XLearning's and HBox's configuration, without their prefix: which are read, and which have no effect
here.

Where their documents and their code spell a key differently, both spellings are read.
"""

from __future__ import annotations

import re

from howdah.compat.xlearning.options import OPTIONS

PREFIXES = ("hbox.", "xlearning.")
# Another spelling, by the name that is read.
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
# Read without being the key of an option.
READ = (
    *("job.labelname", "am.nodeLabelExpression", "worker.nodeLabelExpression", "ps.nodeLabelExpression"),
    *("memory.overhead.fraction", "memory.overhead.minimum", "worker.mem.autoscale", "ps.mem.autoscale"),
    *("app.max.attempts", "job.exec.timeout", "localresource.timeout", "container.maxFailures.rate"),
    *("chief.worker.minimum.data", "chief.worker.minimum.file.num", "placeholder.whole.enable", "tf.input.ps.enable"),
    *("tf.mode.single", "mxnet.mode.single", "tf.distribution.strategy", "host.blacklist"),
    *("reserve.port.begin", "reserve.port.end"),
    "container.auto.create.output.dir",
    *("output.local.dir", "failed.upload", "interresult.dir", "interresult.upload.interval", "interresult.upload.inc"),
    *("remote.defaultFS", "container.mode"),
    *("s3.cluster", "s3.cluster.prefix", "s3.bucket.dir.split", "s3.key.access", "s3.key.secret"),
    *("docker.registry.host", "docker.registry.port", "digits.image-name"),
    *("mpi.install.dir.enable", "mpi.install.dir", "mpi.extra.ld.lirbary.path", "horovod.extra.ld.lirbary.path"),
    *("horovod.timeline", "horovod.fusion.threshold", "horovod.cycle.time", "horovod.stall.check.disable"),
    *("horovod.hierarchical.allreduce", "horovod.mpi.threads.disable", "horovod.process.num.per.worker"),
)
# Keys of other names that are read with these.
PLAIN = {
    "yarn.nodemanager.docker-container-executor.image-name": "docker.executor.image",
    "yarn.nodemanager.container-executor.type": "container.mode",
}
# They tune what is not there (a JVM in every container, polling, sockets, a server of theirs), or need no setting.
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
# What it asks for can't be had: what to do instead.
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
"""The values of refused keys that ask for nothing."""
VARIABLE = "container.env."
"""What a key begins with that sets a variable of every task."""

# What a value must look like, wherever it is set; all others are texts.
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
"""In any case; the first is meant where nothing is said."""

KNOWN = {key for key in (*OPTIONS.values(), *READ) if "." in key}


def plain(key: str) -> str | None:
    """Return `key` without its prefix and in the spelling that is read; None if it is not a key of theirs."""
    for prefix in PREFIXES:
        if key.startswith(prefix):
            bare = key[len(prefix) :]
            return SPELLINGS.get(bare, bare)
    return PLAIN.get(key)
