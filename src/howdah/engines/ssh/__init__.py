"""Runs jobs on a list of hosts that ssh reaches, without a scheduler (docs/engines.md)."""

from howdah.engines.info import EngineInfo
from howdah.spec.setting import Setting

INFO = EngineInfo(
    engine="howdah.engines.ssh.engine:SshEngine",
    allocator="howdah.engines.ssh.allocator:SshAllocator",
    id_prefix="ssh-",
    container_id=r"ssh-(?P<job>[A-Za-z0-9_-]+)-\d+-\d+",
    forgets_jobs=True,
    is_configured=lambda settings: bool(settings.get("ssh.hosts")),
    how_to_configure="`howdah config set ssh.hosts HOST,HOST`, and ssh.home to a directory that they share",
    checks="howdah.cli.doctor_ssh:checks",
    settings={
        "hosts": Setting("", "Hosts that run tasks: [user@]host[:port][/gpus=8][/vcores=64][/memory=512GiB].", "list"),
        "home": Setting("", "Directory of jobs that all hosts share, or the URI of one on HDFS or S3.", "path"),
        "address": Setting("", "Name or address by which the hosts reach this machine."),
        "config": Setting("", "Configuration file of ssh, in place of ~/.ssh/config.", "path"),
    },
)
