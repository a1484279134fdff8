"""Hadoop YARN as an engine, through its own protocols."""

from __future__ import annotations

from howdah.engines.info import EngineInfo

INFO = EngineInfo(
    engine="howdah.engines.yarn.engine:YarnEngine",
    allocator="howdah.engines.yarn.allocator:YarnAllocator",
    id_prefix="application_",
    container_id=r"container_(?:e\d+_)?(?P<job>\d+_\d+)_\d+_\d+",
    forgets_jobs=True,
    is_configured=lambda settings: bool(settings["hadoop_conf_dir"]),
    how_to_configure="set HADOOP_CONF_DIR, or `howdah config set hadoop_conf_dir DIR`, to run jobs there",
    checks="howdah.cli.doctor_yarn:checks",
    extra="yarn",
    extra_modules=("google.protobuf", "hdfs_native", "fsspec"),
    libraries=("protobuf", "hdfs-native", "typing-extensions"),
)
