"""Curves at the stops of a slider of *What if*, for a figure that follows the finger (assets/whatif.js): simulated in a job, as many as are
done within a moment, and asked for beside Dash, whose side of the browser takes longer over an answer than a figure stays."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from flask import Flask, Response, g, request

from retrompi.base.errors import RetrompiError, UsageError
from retrompi.spec.declare.outcome import Outcome
from retrompi.studio.curves import runs
from retrompi.studio.requests import inputs, wrong_entries
from retrompi.studio.requests.guard import AddressRule, line_response

if TYPE_CHECKING:
    from retrompi.studio.components.parts import Begun
    from retrompi.studio.jobs.job import Report
    from retrompi.studio.jobs.resources import Resources

__all__ = ["WAY", "install", "simulate"]

WAY = AddressRule("/whatif/stops")
MOMENT_S = 0.3
"""How long stops are simulated before those that are done are handed over."""
_PATIENCE_S = 10.0
_SLOT = "whatif-stops"
_MOST_B = 1 << 16
_wanted = inputs.mapping(model=inputs.text(), platform=inputs.text(), mode=inputs.text(60), sets=inputs.texts_by_name, name=inputs.text(),
                         texts=inputs.texts())


def simulate(report: Report, places: runs.Places, model: str, platform: str, mode: str, wanted: Mapping[str, Sequence[str]]) -> Any:
    """The curves at stops: of ``wanted``, text of a stop -> overrides, in their order, those done within `MOMENT_S`, one at least.

    By text: rows (place on the axis of sizes, µs, MB/s), none where the value is refused, and ended: the outcome where it did not complete.
    """
    from retrompi.render.document.engine_words import outcome_name
    from retrompi.render.figures.figures import place

    found: dict[str, Any] = {}
    until = time.monotonic() + MOMENT_S
    with runs.open_stores(places) as stores:
        for i, (text, sets) in enumerate(wanted.items()):
            if found and time.monotonic() > until:
                break
            report(i, len(wanted), text)
            try:
                one = runs.curve_of(stores, model, platform, mode, None, sets)
            except RetrompiError:  # told when the finger rests there
                found[text] = {"rows": [], "ended": ""}
                continue
            rows = [[place(r["size_B"]), r["time_us"], r["bandwidth_MBps"]] for r in one["rows"]]
            found[text] = {"rows": rows, "ended": "" if one["outcome"] == Outcome.COMPLETED else outcome_name(one["outcome"])}
    return found


def install(server: Flask, resources: Resources, begin: Callable[[Any], Begun]) -> None:
    """Answers what the page posts: ``begin`` makes the job of it, or raises UsageError."""

    @server.post(WAY.prefix)
    def stops() -> Response:
        if g.new_session:
            return line_response(403, "open a page of the studio first (this browser sends no cookie)")
        try:
            asked = json.loads(request.get_data()) if (request.content_length or 0) <= _MOST_B else None
        except (ValueError, RecursionError):
            asked = None
        if not isinstance(asked, dict):
            raise UsageError("stops of a slider are asked for by an object in JSON", code="missing-option")
        _wanted(asked)
        try:
            title, function, arguments, *_then = begin(asked)
        except wrong_entries.WrongEntries:  # told beside the entries
            return _answer({})
        job = resources.jobs.submit(g.session, title, function, *arguments, slot=_SLOT, client=str(g.get("client", "")))
        state = resources.jobs.wait(job, g.session, _PATIENCE_S)
        if not state.ended:
            resources.jobs.cancel(job, g.session)
        return _answer(state.result if state.status == "done" else {})


def _answer(curves: Any) -> Response:
    return Response(json.dumps(curves, separators=(",", ":")), mimetype="application/json")
