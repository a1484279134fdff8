"""A GPU at one moment. A value that the device does not report is None, and a task without GPUs has no `Gpu` at all."""

from __future__ import annotations

from typing import Mapping, Optional

from howdah.spec.values import dataclass

LOST = 79
HARDWARE: Mapping[int, str] = {
    48: "uncorrectable memory error",
    54: "auxiliary power is not connected",
    57: "memory interface failed",
    58: "unstable memory interface",
    62: "its microcontroller halted",
    64: "a bad row could not be remapped",
    74: "NVLink error",
    LOST: "it has fallen off the bus",
    94: "uncorrectable memory error, contained",
    95: "uncorrectable memory error, not contained",
    119: "its system processor does not answer",
    120: "its system processor failed",
    136: "NVLink training failed",
    140: "uncorrected memory error",
    143: "it could not be initialised",
    144: "NVLink error",
    145: "NVLink error",
    146: "NVLink error",
    147: "NVLink error",
    148: "NVLink error",
    149: "NVLink error",
    150: "NVLink error",
}
"""The driver's critical errors (XID) that are the device's own and end programs, by NVIDIA's catalogue of XID errors.

Not listed: errors that a program causes (13 and 31, illegal accesses; 43 and 45, its work stopped or cleaned up; 8, 11,
32, 68, 69, 109), and errors that are only noted (63, a row to be remapped; 92, many corrected errors; 121, a corrected
link error).
"""


@dataclass(frozen=True)
class Gpu:
    """One GPU at one moment."""

    id: str
    """The device's number or UUID, as the program was given it."""
    name: str = ""
    """The device's model name."""
    use: Optional[float] = None
    """The share of time (0 to 1) in which a kernel ran."""
    memory_mib: Optional[float] = None
    """Memory in use, in MiB."""
    total_mib: Optional[float] = None
    """The device's whole memory, in MiB."""
    celsius: Optional[float] = None
    """The device's temperature."""
    watts: Optional[float] = None
    """The power that the device draws."""
    ecc: Optional[int] = None
    """The number of uncorrected memory errors since the driver was loaded."""
    xids: int = 0
    """The number of the driver's critical errors (XID) since the program began."""
    xid: int = 0
    """The number of the last XID error; 0 for none."""
    fault: int = 0
    """The number of the first XID error that is the hardware's own (see HARDWARE); 0 for none."""
