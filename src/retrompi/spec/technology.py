"""The technologies of networks, which platforms declare and models need."""

from __future__ import annotations

__all__ = ["IP", "TECHNOLOGIES"]

TECHNOLOGIES = {
    "ethernet": "Ethernet",
    "myrinet": "Myrinet",
    "ip-myrinet": "TCP/IP over Myrinet",
    "sp-switch": "the switch of an IBM SP",
    "t3e": "the torus of a Cray T3E",
    "atm": "ATM",
    "fddi": "FDDI",
    "hippi": "HiPPI",
    "giganet": "Giganet cLAN",
    "infiniband": "InfiniBand",
    "qsnet": "Quadrics QsNet",
}
"""Name of a network's technology -> in words."""
IP = tuple(name for name in TECHNOLOGIES if name not in ("t3e", "infiniband", "qsnet"))
"""Technologies under which a host has TCP/IP. The processing elements of a T3E exchange messages by E-registers only; IP over InfiniBand
and over Elan is not simulated."""
