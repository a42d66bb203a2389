"""The memory levels of hosts as a figure: the rate of a copy over its working set."""

from __future__ import annotations

from math import exp

import plotly.graph_objects as go

from retrompi.base.translate import _
from retrompi.base.units import format_bytes, format_rate
from retrompi.render.figures.figures import AXIS, DASHES, PALETTE, layout, size_label
from retrompi.spec.host import Host
from retrompi.spec.platform import Platform

__all__ = ["copy_rate", "figure", "misses"]

_FIRST, _LAST = 10, 25
"""Working sets from 1 KiB to 32 MiB."""
_A_DOUBLING = 4


def misses(host: Host, working_set: float) -> float:
    """The share of a working set's lines that miss the second-level cache (derivation: host_spec.hpp)."""
    load = working_set * host.l2_ways / host.l2
    term, below = exp(-load), 0.0
    for k in range(int(host.l2_ways)):
        below += term
        term *= load / (k + 1)
    return min(max(1 - below, 0.0), 1.0)


def copy_rate(host: Host, working_set: float) -> float:
    """Bytes a second of an undisturbed copy between two buffers with this working set (B): the engine's own rule."""
    if working_set <= host.l1:
        return host.copy_l1
    miss = misses(host, working_set)
    return 1 / ((1 - miss) / host.copy_l2 + miss / host.copy_mem)


def figure(platform: Platform) -> go.Figure:
    """One line per kind of host of a platform; its steps are the caches."""
    kinds: dict[tuple[float, ...], list[Host]] = {}
    for h in platform.hosts:
        kinds.setdefault((h.l1, h.l2, h.l2_ways, h.copy_l1, h.copy_l2, h.copy_mem), []).append(h)
    drawn = go.Figure()
    steps = {2.0 ** (k / _A_DOUBLING) for k in range(_FIRST * _A_DOUBLING, _LAST * _A_DOUBLING + 1)}
    sizes = sorted(steps | {h.l1 for h in platform.hosts})
    for i, hosts in enumerate(kinds.values()):
        first = hosts[0]
        name = first.name + (_(" and {n} more").format(n=len(hosts) - 1) if len(hosts) > 1 else "")
        drawn.add_scatter(
            x=sizes,
            y=[copy_rate(first, s) for s in sizes],
            name=name,
            mode="lines",
            line={"color": PALETTE[i], "dash": DASHES[i], "width": 3},
            text=[f"{format_bytes(round(s))}: {format_rate(copy_rate(first, s))}" for s in sizes],
            hoverinfo="text+name",
        )
    layout(drawn, _("Copy rate over the working set"))
    shown = [2.0**k for k in range(_FIRST, _LAST + 1, 3)]
    drawn.update_xaxes(
        type="log",
        title={"text": _("working set, B (K = 1024)")},
        tickvals=shown,
        ticktext=[size_label(s) for s in shown],
        tickangle=0,
        **AXIS,
    )
    top = max(copy_rate(h, sizes[0]) for h in platform.hosts)
    step = 10.0 ** len(str(int(top / 1e6))) * 1e5 / 2
    ticks = [i * step for i in range(int(top / step) + 2)]
    drawn.update_yaxes(
        title={"text": _("rate of a copy"), "standoff": 12},
        range=[0, top * 1.06],
        tickvals=ticks[:: max(len(ticks) // 6, 1)],
        ticktext=[format_rate(t) if t else "0" for t in ticks[:: max(len(ticks) // 6, 1)]],
        **AXIS,
    )
    # At the figure's edge: a share of the plot's height below it is on the axis title where the plot is low, as on a phone.
    drawn.update_layout(showlegend=True, margin={"l": 90, "b": 96}, legend={"yref": "container", "y": 0.01, "yanchor": "bottom"})
    return drawn
