"""Which values of a platform a run uses, from the kinds of work (`fields.Use`) caused by its channels and its program.

Each field of `Host` and `Link` declares the work that uses it; `work_of` returns the kinds of work of a compiled run. An override of a
value that no work of a run uses is refused (`retrompi.spec.compiled.compile.unused_overrides`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from retrompi.spec.declare.fields import Use, fields_of, quantities, used_by
from retrompi.spec.host import Host
from retrompi.spec.hosts import EVERY_HOST, Grown
from retrompi.spec.machine.link import Link
from retrompi.spec.media import Medium, WaitPolicy, calls_system

if TYPE_CHECKING:
    from retrompi.spec.declare.calls import Calls
    from retrompi.spec.layout import Layout

__all__ = ["used_paths", "why_not", "work_of"]

_NONE_IN_TRACE = "the trace has none"
_NONE_HERE = "this run has none"
_ABSENT: Mapping[Use, str] = {
    Use.COMPUTE: _NONE_IN_TRACE,
    Use.KERNELS: _NONE_IN_TRACE,
    Use.ROOFLINE: _NONE_IN_TRACE,
    Use.SHARED_MEMORY: "no host of this run has several processors that copy or compute",
    Use.CACHES: "no host of this run has several processors",
    Use.TCP_LOSS: "nothing fails in this run (--fail)",
    Use.IP: "no socket of this run reaches another machine",
    Use.WIRE: "no message of this run leaves its machine",
    Use.CARRY: "a quantum of this run's machines does not outlive a wait (quantum_carry is 0)",
    Use.SITES: "the link of this run joins no sites",
}
"""Why a run has no work of a kind, where the reason is more specific than `_NONE_HERE`."""


def work_of(layout: Layout, rows: Mapping[str, Any], calls: Calls) -> set[Use]:
    """The kinds of work of a compiled run: of the hops in its ``rows`` and of the ``calls`` of its program."""
    found = {Use.ALWAYS}
    for hop in (*rows["same"], *rows["same_bulk"], *rows["remote"]):
        found |= Medium.of(hop).uses(remote=_crosses(hop) and hop in rows["remote"])
    direct = any(kind == "direct" for _, _, kind in rows["protocol_same"])
    one_sided = calls.one_sided or (rows["bcast"]["algorithm"] == "put_tree" and calls.collective)
    bursts = layout.several_hosts and one_sided and rows["one_sided_remote"] is not None
    more = {
        Use.COMPUTE: calls.computing,
        Use.KERNELS: calls.loops,
        Use.ROOFLINE: calls.kernels,
        Use.COPIES: calls.collective or calls.one_sided,
        Use.CALLS: direct or rows["test_system"] > 0 or rows["lock_system"] > 0 or any(calls_system(WaitPolicy(**w)) for w in _waits(rows)),
        Use.CARRY: any(h["quantum_carry"] for h in rows["hosts"]["kinds"]),
        Use.TCP_LOSS: Use.TCP_REMOTE in found and calls.failures,
        Use.IP: calls.traffic,
        Use.WIRE: bursts or calls.traffic,
        Use.FRAGMENTS: bursts,
        Use.BURSTS: bursts,
        Use.CORES: direct,
        Use.BYTE_ORDER: layout.mixed_byte_order,
        Use.SITES: layout.several_hosts and layout.platform.link.of_kind.sited,
    }
    found |= {use for use, yes in more.items() if yes}
    if not any(h["cores"] > 1 for h in rows["hosts"]["kinds"]):
        return found - {Use.CACHES}
    return found | ({Use.SHARED_MEMORY} if {Use.COPIES, Use.COMPUTE} & found else set())


def _waits(rows: Mapping[str, Any]) -> list[dict[str, Any]]:
    hops = (*rows["same"], *rows["same_bulk"], *rows["remote"])
    return [rows["recv_wait"], rows["send_wait"], *rows["idle"].values(), *(h["space_wait"] for h in hops if "space_wait" in h)]


def _crosses(hop: Mapping[str, Any]) -> bool:
    """Whether a hop of the path between hosts leaves its host; a hop to a proxy or daemon of the same host does not."""
    ends = hop["between"]
    return tuple(ends) == ("rank", "rank") or (ends[0].endswith("@src") and ends[1].endswith("@dst"))


def used_paths(layout: Layout, rows: Mapping[str, Any], calls: Calls) -> set[str]:
    """Paths (``platform.server.quantum``) of the platform values used by a compiled run; of a sized platform ``platform.host.quantum``."""
    work = work_of(layout, rows, calls)
    keys = [k for k in used_by(Host, work) if k in quantities(Host) and k not in layout.fixed]
    owners = [EVERY_HOST] if isinstance(layout.hosts, Grown) else [h.name for h in layout.hosts]
    found = {f"platform.{name}.{k}" for name in owners for k in keys} | {f"platform.{path}" for path in layout.read}
    of_link = used_by(Link, work)
    return found | {f"platform.link.{k}" for k in (*of_link, *(["sites"] if "shape" in of_link else []))}


def why_not(path: str, layout: Layout) -> str:
    """Why a run does not use the platform value at ``path`` (``server.quantum``), as a text to follow its name in a message."""
    owner, _, key = path.rpartition(".")
    if owner == "link" and not layout.several_hosts:
        return "belongs to the link between machines; this run is on one machine"
    if owner not in ("link", EVERY_HOST) and not layout.runs(owner):
        return f"is not used; no rank of this run is on '{owner}'"
    if key in layout.fixed:
        return "is not used; the model states a value of its own"
    work = fields_of(Link if owner == "link" else Host)["shape" if key == "sites" else key].used_by
    return f"belongs to {' and '.join(work)}; {_ABSENT.get(work[0], _NONE_HERE)}"
