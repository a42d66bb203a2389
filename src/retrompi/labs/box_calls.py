"""The system calls that programs in a box do not get, as a filter of the kernel's (seccomp, classic BPF).

What is refused changes a machine rather than a program's own memory and files, sees other processes, or holds memory that nobody
counts. Everything else is allowed: which calls a compiler and an MPI need changes with each release of them.
"""

from __future__ import annotations

import errno
import os
import struct

__all__ = ["REFUSED", "filter_program"]

_ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
"""Machine -> (AUDIT_ARCH_* of linux/audit.h, column of the numbers below)."""

REFUSED: dict[str, tuple[int | None, int | None]] = {
    # mounts and roots
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "open_tree": (428, 428),
    "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442), "open_tree_attr": (467, 467),
    # namespaces; clone with their flags is refused below
    "unshare": (272, 97), "setns": (308, 268),
    # other processes
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272), "pidfd_getfd": (438, 438),
    # the kernel's keys, programs and counters
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219), "bpf": (321, 280), "perf_event_open": (298, 241),
    "userfaultfd": (323, 282), "fanotify_init": (300, 262), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427), "modify_ldt": (154, None),
    # files by number instead of by name
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265),
    # memory that belongs to no process and no folder
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "shmget": (29, 194), "msgget": (68, 186), "semget": (64, 190),
    "mq_open": (240, 180),
    # the machine
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "reboot": (169, 142), "swapon": (167, 224), "swapoff": (168, 225), "acct": (163, 89),
    "quotactl": (179, 60), "quotactl_fd": (443, 443), "syslog": (103, 116), "settimeofday": (164, 170), "clock_settime": (227, 112),
    "clock_adjtime": (305, 266), "adjtimex": (159, 171), "sethostname": (170, 161), "setdomainname": (171, 162), "iopl": (172, None),
    "ioperm": (173, None), "vhangup": (153, 58),
}  # fmt: skip
"""Name -> its number on x86_64 and on aarch64, None where there is no such call."""
_CLONE, _CLONE3, _SOCKET, _IOCTL, _MMAP = (56, 220), (435, 435), (41, 198), (16, 29), (9, 222)
_NEW_NAMESPACES = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET (linux/sched.h)."""
_FAMILIES = (1, 2, 10, 16)
"""AF_UNIX, AF_INET, AF_INET6, AF_NETLINK. Others leave the box's network (AF_VSOCK), or are the kernel's own (AF_ALG, AF_PACKET)."""
_TO_TERMINALS = (0x5412, 0x541C, 0x5423)
"""TIOCSTI, TIOCLINUX, TIOCSETD: typing into a terminal, pasting into one, changing what it is."""
_SHARED_NAMELESS = 0x21
"""MAP_SHARED and MAP_ANONYMOUS: memory that stays when a process gives its pages of it back, and so is counted nowhere."""

_NUMBER, _ARCHITECTURE, _FIRST, _SECOND, _FOURTH = 0, 4, 16, 24, 40
"""Places in struct seccomp_data; of an argument the lower half, which both little-endian machines have first."""
_LOAD, _AND, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000
_X32 = 0x40000000
"""Bit of the numbers of x86's second set of calls, with 32-bit pointers, which has other numbers for the same calls."""


def filter_program(machine: str | None = None) -> bytes | None:
    """The filter as ``struct sock_filter``s, for bubblewrap's --seccomp; None for a machine whose numbers are not known here."""
    found = _ARCHITECTURES.get(machine or os.uname().machine)
    if found is None:
        return None
    architecture, column = found
    refuse, absent = _ERROR | errno.EPERM, _ERROR | errno.ENOSYS
    code = [(_LOAD, 0, 0, _ARCHITECTURE), (_EQUAL, 1, 0, architecture), (_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, _NUMBER),
            (_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _KILL)]  # fmt: skip
    for numbers in REFUSED.values():
        if (number := numbers[column]) is not None:
            code += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, refuse)]
    # Its flags are behind a pointer, which no filter can follow; without it the C library uses clone.
    code += [(_EQUAL, 0, 1, _CLONE3[column]), (_RETURN, 0, 0, absent)]
    code += [(_EQUAL, 0, 4, _CLONE[column]), (_LOAD, 0, 0, _FIRST), (_ANY_BIT, 0, 1, _NEW_NAMESPACES), (_RETURN, 0, 0, refuse),
             (_RETURN, 0, 0, _ALLOW)]  # fmt: skip
    code += [(_EQUAL, 0, 5, _MMAP[column]), (_LOAD, 0, 0, _FOURTH), (_AND, 0, 0, _SHARED_NAMELESS), (_EQUAL, 0, 1, _SHARED_NAMELESS),
             (_RETURN, 0, 0, refuse), (_RETURN, 0, 0, _ALLOW)]  # fmt: skip
    families = [(_EQUAL, len(_FAMILIES) - at, 0, family) for at, family in enumerate(_FAMILIES)]
    unknown = _ERROR | errno.EAFNOSUPPORT
    code += [(_EQUAL, 0, len(families) + 3, _SOCKET[column]), (_LOAD, 0, 0, _FIRST), *families, (_RETURN, 0, 0, unknown),
             (_RETURN, 0, 0, _ALLOW)]  # fmt: skip
    requests = [(_EQUAL, len(_TO_TERMINALS) - at, 0, request) for at, request in enumerate(_TO_TERMINALS)]
    code += [(_EQUAL, 0, len(requests) + 3, _IOCTL[column]), (_LOAD, 0, 0, _SECOND), *requests, (_RETURN, 0, 0, _ALLOW),
             (_RETURN, 0, 0, refuse), (_RETURN, 0, 0, _ALLOW)]  # fmt: skip
    return b"".join(struct.pack("<HBBI", *step) for step in code)
