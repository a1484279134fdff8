"""A GPU as it was seen at one moment. What the device does not tell is None; one without GPUs has none of these."""

from __future__ import annotations

from typing import Optional

from howdah.spec.values import dataclass


@dataclass(frozen=True)
class Gpu:
    """`id` is the device's number or UUID as the program was given it. `use` is the share of time (0..1) in which a
    kernel ran; `ecc` counts uncorrected memory errors since the driver was loaded, `xids` the driver's critical errors
    since the program began, of which `xid` is the last."""

    id: str
    name: str = ""
    use: Optional[float] = None
    memory_mib: Optional[float] = None
    total_mib: Optional[float] = None
    celsius: Optional[float] = None
    watts: Optional[float] = None
    ecc: Optional[int] = None
    xids: int = 0
    xid: int = 0
