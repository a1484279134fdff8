"""This machine as an engine: containers are processes, with a share in the ledger that all jobs use."""

from __future__ import annotations

from howdah.engines.info import EngineInfo

INFO = EngineInfo(
    engine="howdah.engines.local.engine:LocalEngine",
    allocator="howdah.engines.local.allocator:LocalAllocator",
    id_prefix="local-",
    container_id=r"local-(?P<job>[A-Za-z0-9_-]+)\.\d+",
    is_configured=lambda _: True,
    checks="howdah.cli.doctor_local:checks",
)
