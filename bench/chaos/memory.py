"""Makes a running process allocate memory, as a leak would, by an mmap(2) call that ptrace(2) puts into it."""

from __future__ import annotations

import ctypes
import os
import time
from pathlib import Path

POSSIBLE = os.uname().machine == "x86_64"
"""Registers, and the numbers of system calls, are those of this machine."""
LIMIT_S = 10.0
_ATTACH, _DETACH, _GETREGS, _SETREGS, _STEP = 16, 17, 12, 13, 9
_NAMES = "r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss"
_SEGMENTS = "fs_base gs_base ds es fs gs"
_SYSCALL = b"\x0f\x05"
_MMAP, _READ_WRITE, _PRIVATE_ANONYMOUS_POPULATED = 9, 3, 0x8022
_LIBC = ctypes.CDLL(None, use_errno=True)


class _Registers(ctypes.Structure):
    """Lays out `struct user_regs_struct` of x86-64."""

    _fields_ = tuple((name, ctypes.c_ulonglong) for name in (*_NAMES.split(), *_SEGMENTS.split()))


def inflate(pid: int, size: int) -> None:
    """Have process `pid` allocate `size` bytes that it touches and never frees; it goes on with what it did.

    Raises:
        OSError: it may not be traced, has ended, or has no room.
        TimeoutError: it was never seen in a system call, where alone this is possible.
    """
    _ptrace(_ATTACH, pid)
    try:
        os.waitpid(pid, 0)
        before = _in_a_system_call(pid)
        call = _Registers.from_buffer_copy(before)
        call.rip, call.orig_rax, call.rax = before.rip - len(_SYSCALL), 2**64 - 1, _MMAP
        call.rdi, call.rsi, call.rdx = 0, size, _READ_WRITE
        call.r10, call.r8, call.r9 = _PRIVATE_ANONYMOUS_POPULATED, 2**64 - 1, 0
        _ptrace(_SETREGS, pid, ctypes.byref(call))
        _ptrace(_STEP, pid)
        os.waitpid(pid, 0)
        _ptrace(_GETREGS, pid, ctypes.byref(call))
        _ptrace(_SETREGS, pid, ctypes.byref(before))
        if call.rax >= 2**64 - 4096:
            raise OSError(2**64 - call.rax, f"mmap of {size} bytes in process {pid}")
    finally:
        _ptrace(_DETACH, pid)


def _in_a_system_call(pid: int) -> _Registers:
    """Its registers, once it was stopped in one: the instruction that made the call makes ours, too."""
    registers, deadline = _Registers(), time.monotonic() + LIMIT_S
    while True:
        _ptrace(_GETREGS, pid, ctypes.byref(registers))
        with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
            memory.seek(registers.rip - len(_SYSCALL))
            found = memory.read(len(_SYSCALL))
        if found == _SYSCALL and registers.orig_rax < 2**63:
            return registers
        if time.monotonic() > deadline:
            raise TimeoutError(f"process {pid} was in no system call within {LIMIT_S:.0f} s")
        _ptrace(_DETACH, pid)
        time.sleep(0.01)
        _ptrace(_ATTACH, pid)
        os.waitpid(pid, 0)


def _ptrace(request: int, pid: int, data: object = None) -> None:
    if _LIBC.ptrace(ctypes.c_long(request), ctypes.c_long(pid), None, data) == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{os.strerror(number)}: ptrace({request}) of process {pid}")


def resident(pid: int) -> int:
    """Return the resident memory of a process, in bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
