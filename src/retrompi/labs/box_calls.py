"""The system calls that programs in a box do not get, as a filter of the kernel's (seccomp, classic BPF).

What is refused changes a machine rather than a program's own memory and files, sees other processes, or holds memory that nobody
counts. Everything else is allowed: which calls a compiler and an MPI need changes with each release of them.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Sequence

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
    # of a number that is bounded for the whole machine
    "io_setup": (206, 0),
    # memory that belongs to no process and no folder; a page in a pipe holds the huge page that it is of
    "vmsplice": (278, 75),
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "shmget": (29, 194), "msgget": (68, 186), "semget": (64, 190),
    "mq_open": (240, 180),
    # the machine
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "reboot": (169, 142), "swapon": (167, 224), "swapoff": (168, 225), "acct": (163, 89),
    "quotactl": (179, 60), "quotactl_fd": (443, 443), "syslog": (103, 116), "settimeofday": (164, 170), "clock_settime": (227, 112),
    "clock_adjtime": (305, 266), "adjtimex": (159, 171), "sethostname": (170, 161), "setdomainname": (171, 162), "iopl": (172, None),
    "ioperm": (173, None), "vhangup": (153, 58),
}
"""Name -> its number on x86_64 and on aarch64, None where there is no such call."""
_CLONE, _CLONE3, _SOCKET, _SOCKETPAIR, _SETSOCKOPT = (56, 220), (435, 435), (41, 198), (53, 199), (54, 208)
_IOCTL, _MMAP, _SETRLIMIT, _PRLIMIT = (16, 29), (9, 222), (160, 164), (302, 261)
_NEW_NAMESPACES = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET (linux/sched.h)."""
_UNIX, _NETLINK, _INTERNET, _PROTOCOLS = 1, 16, (2, 10), (0, 6, 17)
"""AF_UNIX, AF_NETLINK (of which the first protocol tells the names of interfaces), AF_INET and AF_INET6 with TCP and UDP. Others leave the
box's network (AF_VSOCK), are the kernel's own (AF_ALG, AF_PACKET), or have it load a module (SCTP, TIPC)."""
_SOL_SOCKET, _BUFFERS, _ZEROCOPY = 1, (7, 8, 32, 33), 60
"""SO_SNDBUF, SO_RCVBUF and their FORCEs, which do nothing in a box: what a socket holds is counted by its default. SO_ZEROCOPY, by which it
holds pages of a process."""
_RLIMIT_CORE = 4
_TO_TERMINALS = (0x5412, 0x541C, 0x5423)
"""TIOCSTI, TIOCLINUX, TIOCSETD: typing into a terminal, pasting into one, changing what it is."""
_SHARED_NAMELESS, _HUGE = 0x21, 0x40000
"""MAP_SHARED and MAP_ANONYMOUS: memory that stays when a process gives its pages of it back, and so is counted nowhere. MAP_HUGETLB: memory
of a stock that is the machine's."""

_NUMBER, _ARCHITECTURE, _FIRST, _SECOND, _THIRD, _FOURTH, _UPPER = 0, 4, 16, 24, 32, 40, 4
"""Places in struct seccomp_data; of an argument the lower half, which both little-endian machines have first, and where its upper half is
from there."""
_LOAD, _AND, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000
_X32 = 0x40000000
"""Bit of the numbers of x86's second set of calls, with 32-bit pointers, which has other numbers for the same calls."""


Code = list[tuple[int, int, int, int]]
"""Steps of a filter, as the operation, how many steps it leaves out if it is true and if it is not, and its number."""


def _ends(action: int) -> Code:
    return [(_RETURN, 0, 0, action)]


def _where(place: int, values: Sequence[int], then: Code, otherwise: Code) -> Code:
    """``then`` where the word at ``place`` is one of ``values``. Both end with what they return."""
    tests = [(_EQUAL, len(values) - 1 - at + len(otherwise), 0, value) for at, value in enumerate(values)]
    return [(_LOAD, 0, 0, place), *tests, *otherwise, *then]


def _rules() -> list[tuple[tuple[int, int], Code]]:
    """The calls that depend on their arguments, and what becomes of them."""
    allow, refuse, unknown, nothing = map(_ends, (_ALLOW, _ERROR | errno.EPERM, _ERROR | errno.EAFNOSUPPORT, _ERROR))
    internet = _where(_FIRST, _INTERNET, _where(_THIRD, _PROTOCOLS, allow, unknown), unknown)
    families = _where(_FIRST, (_UNIX,), allow, _where(_FIRST, (_NETLINK,), _where(_THIRD, (0,), allow, unknown), internet))
    options = _where(_THIRD, _BUFFERS, nothing, _where(_THIRD, (_ZEROCOPY,), refuse, allow))
    reads = _where(_THIRD, (0,), _where(_THIRD + _UPPER, (0,), allow, refuse), refuse)
    return [
        # Its flags are behind a pointer, which no filter can follow; without it the C library uses clone.
        (_CLONE3, _ends(_ERROR | errno.ENOSYS)),
        (_CLONE, [(_LOAD, 0, 0, _FIRST), (_ANY_BIT, 0, 1, _NEW_NAMESPACES), *refuse, *allow]),
        (_MMAP, [(_LOAD, 0, 0, _FOURTH), (_ANY_BIT, 2, 0, _HUGE), (_AND, 0, 0, _SHARED_NAMELESS), (_EQUAL, 0, 1, _SHARED_NAMELESS),
                 *refuse, *allow]),
        (_SOCKET, families),
        (_SOCKETPAIR, _where(_FIRST, (_UNIX,), allow, unknown)),
        (_SETSOCKOPT, _where(_SECOND, (_SOL_SOCKET,), options, allow)),
        (_SETRLIMIT, _where(_FIRST, (_RLIMIT_CORE,), refuse, allow)),
        (_PRLIMIT, _where(_SECOND, (_RLIMIT_CORE,), reads, allow)),
        (_IOCTL, _where(_SECOND, _TO_TERMINALS, refuse, allow)),
    ]


def filter_program(machine: str | None = None) -> bytes | None:
    """The filter as ``struct sock_filter``s, for bubblewrap's --seccomp; None for a machine whose numbers are not known here."""
    found = _ARCHITECTURES.get(machine or os.uname().machine)
    if found is None:
        return None
    architecture, column = found
    code: Code = [(_LOAD, 0, 0, _ARCHITECTURE), (_EQUAL, 1, 0, architecture), *_ends(_KILL), (_LOAD, 0, 0, _NUMBER),
                  (_AT_LEAST, 0, 1, _X32), *_ends(_KILL)]
    refused = [((number, number), _ends(_ERROR | errno.EPERM)) for pair in REFUSED.values() if (number := pair[column]) is not None]
    for numbers, steps in (*refused, *_rules()):
        code += [(_EQUAL, 0, len(steps), numbers[column]), *steps]
    return b"".join(struct.pack("<HBBI", *step) for step in (*code, *_ends(_ALLOW)))
