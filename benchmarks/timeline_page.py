"""How soon the page of a long timeline can be read: ``python benchmarks/timeline_page.py --states 1e8``.

A recorded run (a halo exchange of 64 ranks on WMPI's cluster) is repeated one after the other until it has that many states, with its
calls and messages; its page is written and opened in Chromium from the disk. Printed are the time to the first drawing, to the whole
overview, and from a click that zooms to single states to their drawing. Needs Chromium and Playwright, and some 40 B of memory and 12 B of
disk a state.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from retrompi.render.timeline import timeline_page
from retrompi.sim import simulate
from retrompi.sim.observe import Observe
from retrompi.sim.timeline import Messages, Process, Timeline, TimelineCalls, TimelineRequest
from retrompi.spec.question import Question, Replay
from retrompi.traces import generate

RANKS = 8


def recorded() -> Timeline:
    """The run that is repeated, complete."""
    trace = generate.halo2d(RANKS, RANKS, 8192, 40, flops=1e5)
    found = simulate.run(Question("wmpi", "nt-cluster", Replay(trace)), Observe(timeline=TimelineRequest(limit=10_000_000))).timeline
    assert found is not None
    assert not found.sampled
    return found


def repeated(t: Timeline, times: int) -> Timeline:
    """``times`` of them one after the other; a state of nothing fills each process's rest."""
    length = t.end + 1
    shifts = np.arange(times, dtype=np.int64) * length

    def all_of(values: Any, shifted: bool = False, kind: Any = np.int64) -> Any:
        one = np.asarray(values, dtype=kind)
        return (np.where(one < 0, one, one + shifts[:, None]) if shifted else np.broadcast_to(one, (times, len(one)))).reshape(-1)

    def process(p: Process) -> Process:
        begin = all_of(p.begin, True)
        state, merged = (all_of(v, kind=np.uint8) for v in (p.state, p.merged))
        totals = {k: v * times for k, v in p.totals.items()}
        return replace(p, end=int(p.end + shifts[-1]), begin=begin, state=state, merged=merged, totals=totals)

    def records(r: TimelineCalls | Messages, times_of: set[str]) -> Any:
        return type(r)(**{k: all_of(v, k in times_of) for k, v in vars(r).items()})

    calls = records(t.calls, {"begin", "end"})
    by_rank = np.argsort(calls.rank, kind="stable")
    calls = TimelineCalls(**{k: v[by_rank] for k, v in vars(calls).items()})
    messages = records(t.messages, {"sent", "received", "hop_in", "hop_out"})
    return replace(
        t, end=int(t.end + shifts[-1]), processes=[process(p) for p in t.processes], calls=calls, messages=messages,
        states_seen=t.states_seen * times, calls_seen=t.calls_seen * times, messages_seen=t.messages_seen * times,
    )


def opened(path: Path) -> dict[str, float]:
    """Seconds in Chromium: to the first drawing, the overview, a zoom to a 100,000th in the middle."""
    from playwright.sync_api import sync_playwright

    found = {}
    chart = "document.getElementById('timeline')"
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium") or shutil.which("chromium-browser"))
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(600_000)
        began = time.monotonic()
        page.goto(path.as_uri(), wait_until="commit")
        page.wait_for_function(f"{chart}?.dataset.drawn", polling=20)
        found["first drawing"] = time.monotonic() - began
        page.evaluate(f"{chart}.timeline.ready()")
        found["overview"] = time.monotonic() - began
        page.wait_for_load_state("load")
        found["whole file read"] = time.monotonic() - began
        view = page.evaluate(f"{chart}.timeline.view")
        middle, part = (view["from"] + view["to"]) // 2, (view["to"] - view["from"]) / 200_000
        began = time.monotonic()
        page.evaluate(f"(() => {{ {chart}.timeline.show({middle - part}, {middle + part}); return {chart}.timeline.ready(); }})()")
        found["zoom to single states"] = time.monotonic() - began
        page.screenshot(path=str(path.with_suffix(".png")))
        browser.close()
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--states", type=float, default=1e7, help="states of the timeline, at least")
    options.add_argument("--keep", type=Path, help="folder for the page and a picture of the zoomed chart")
    chosen = options.parse_args()
    one = recorded()
    each = sum(len(p.begin) for p in one.processes)
    t = repeated(one, max(1, -(-int(chosen.states) // each)))
    states = sum(len(p.begin) for p in t.processes)
    print(f"{states:,} states, {len(t.calls):,} calls, {len(t.messages):,} messages of {len(t.processes)} processes")
    with tempfile.TemporaryDirectory() as made:
        path = (chosen.keep or Path(made)) / "timeline.html"
        began, spent = time.monotonic(), time.process_time()
        timeline_page.write(t, path)
        took, worked = time.monotonic() - began, time.process_time() - spent
        size, memory = path.stat().st_size / 1e6, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"written in {took:.1f} s ({worked:.1f} s processor time), {size:,.0f} MB, memory {memory:.1f} GiB")
        del t
        for what, seconds in opened(path).items():
            print(f"{what:24} {seconds:7.2f} s")


if __name__ == "__main__":
    main()
