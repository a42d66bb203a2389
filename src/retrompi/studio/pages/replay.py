"""The replay of a trace: activity of every process, communication between ranks, time shares of each rank, and how the job ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dash import Dash, Input, Output, State, html, no_update

from retrompi.base.errors import UsageError
from retrompi.base.translate import _, count, lazy
from retrompi.base.units import format_bytes, parse_sizes
from retrompi.render.document.engine_words import outcome_name, process_name
from retrompi.spec import registry
from retrompi.spec.declare.outcome import Outcome
from retrompi.spec.declare.result import RankRow, outputs
from retrompi.spec.registry import resolve
from retrompi.studio.anatomy.anatomy_job import sets_of
from retrompi.studio.anatomy.offered_traces import MADE, check_choice, shipped_traces
from retrompi.studio.anatomy.path_words import OUTCOME_WORDS, seconds
from retrompi.studio.anatomy.replay_job import perform
from retrompi.studio.components import home_platform, menus, parts, timeline_frames
from retrompi.studio.requests import inputs, wrong_entries
from retrompi.studio.requests.first_answer import pending
from retrompi.studio.requests.page import Page
from retrompi.studio.requests.state import Control, Query, choice, number, read, text
from retrompi.studio.requests.uploads import uploads_of

if TYPE_CHECKING:
    from dash.development.base_component import Component

    from retrompi.studio.jobs.resources import Resources

_MODES = ("natural", "shared", "distributed", "block", "cyclic")
MOST_RANKS = 64
_LARGEST = 16 << 20


def _size(written: str) -> str:
    _bytes(written)
    return written.strip()


def _bytes(written: str) -> int:
    found = parse_sizes(written)
    if len(found) != 1 or found[0] > _LARGEST:
        raise UsageError(f"'{written[:60]}': give one size, at most {format_bytes(_LARGEST)}", code="out-of-range")
    return found[0]


PAGE = Page(
    path="/replay",
    title=lazy("Replay"),
    order=30,
    help=lazy("A complete program on a runtime: timeline, communication matrix, times of the ranks, and the outcome."),
    controls=(
        Control("replay-trace", "value", "trace", "made:broadcast", check_choice),
        Control("replay-model", "value", "model", registry.FIRST_MODEL, choice(registry.model_names, "model")),
        Control("replay-platform", "value", "platform", "nt-cluster", menus.PLATFORM, "model"),
        Control("replay-mode", "value", "mode", "distributed", choice(list(_MODES), "mode")),
        Control("replay-ranks", "value", "ranks", 8, number(2, MOST_RANKS, whole=True)),
        Control("replay-size", "value", "size", "64 KiB", _size),
        Control("replay-set", "value", "set", "", text(500)),
    ),
    inputs={"replay-before.data": inputs.text()},
)


def options(resources: Resources, session: str) -> list[dict[str, str]]:
    """The dropdown options for replay: the session's uploads first."""
    uploads = resources.uploads.of(session, "trace")
    own = [{"value": f"upload:{u.id}", "label": _("your upload: {label}").format(label=u.label)} for u in uploads]
    made = [{"value": name, "label": _("made: {label}").format(label=_(m.label))} for name, m in MADE.items()]
    return [*own, *made, *({"value": name, "label": _("recorded: {name}").format(name=name)} for name in shipped_traces())]


def layout(query: Query, resources: Resources) -> Component:
    """The controls, the upload, and the result of the replay."""
    values, wrong = read(PAGE.controls, menus.with_platforms(query, PAGE.controls))
    known = options(resources, parts.session())
    if values["trace"] not in {o["value"] for o in known}:
        wrong.append(_("the trace of this link was uploaded in another browser session, or has been removed; upload it again"))
        values["trace"] = "made:broadcast"
    made = {} if values["trace"] in MADE else {"display": "none"}
    ranks = parts.entry(
        _("Ranks"),
        "replay-ranks",
        values["ranks"],
        _("2 to {most_ranks}").format(most_ranks=MOST_RANKS),
        type="number",
        min=2,
        max=MOST_RANKS,
        step=1,
    )
    size = parts.entry(_("Size"), "replay-size", values["size"], _("of each message, with its unit"), size="10")
    placements = [
        {"value": "natural", "label": _("natural: as the platform is used")},
        *menus.modes(_("all on one host"), _("one per host, round-robin")),
        {"value": "block", "label": _("block: the processors of a host, then the next")},
        {"value": "cyclic", "label": _("cyclic: one per host, full hosts left out")},
    ]
    figures = [
        html.H2(_("What every process did")),
        html.P(_("A column of pixels shows the shares of its time in each state; nearer, one sees the states themselves. Drag to move, "
               "scroll or pinch to zoom, double-click to see all; point at a bar for the call and its line in the trace."),
               className="soft help"),
        html.Iframe(id="replay-timeline", title=_("Timeline: what every process did; the table below has the sums"),
                    className="timeline-frame", sandbox="allow-scripts"),
        html.Div([
            html.H2(_("Communication matrix")),
            html.Div([parts.graph(f"replay-{what}", f"{_('Communication matrix')}: {_(what)}", css="square")
                      for what in ("bytes", "messages")], className="beside"),
        ], id="replay-matrix"),
    ]
    asked = [
            parts.controls(
                parts.menu(_("Trace"), "replay-trace", known, values["trace"]),
                parts.menu(_("Runtime"), "replay-model", menus.models(), values["model"]),
                parts.menu(_("Platform"), "replay-platform", menus.platforms(values["platform"]), values["platform"]),
                home_platform.apart("replay", values["model"], values["platform"]),
                parts.menu(_("Placement"), "replay-mode", placements, values["mode"]),
                html.Div([ranks, size], id="replay-made", style=made),
                parts.overrides_field("replay-set", values["set"]),
            ),
            *parts.upload_row("replay", _("Upload a trace"), resources.limits.upload_B,
                              _("one file for all ranks, or an archive (tar, zip) with one file per rank; plain, gzip or zstd"),
                              _(": pack it with zstd or gzip")),
    ]
    shown = [
        html.Div([parts.job_bar("replay"), html.Div(id="replay-said"), html.Div(figures, id="replay-figures", style={"display": "none"})],
                 className="first"),
        html.Div(id="replay-tables"),
    ]
    return html.Div([parts.notices(wrong), parts.bench(asked, shown, stays=True)])


# -- what is shown -----------------------------------------------------------------------------------------------------


def _facts(r: Mapping[str, Any]) -> Component:
    good = r["outcome"] == Outcome.COMPLETED
    head = html.P(
        [
            html.B(r["name"]),
            ": ",
            html.Span(outcome_name(r["outcome"]), className="pass" if good else "fail", id="replay-outcome"),
            _(
                " after {time_s} of simulated time. {ranks} ranks, {actions} calls, {messages} messages of "
                "{bytes} in all, {packets} packets, {frames} frames on the wire"
            ).format(
                time_s=seconds(r["time_s"]),
                ranks=r["ranks"],
                actions=count(r["actions"]),
                messages=count(r["messages"]),
                bytes=format_bytes(r["bytes"]),
                packets=count(r["packets"]),
                frames=count(r["frames"]),
            )
            + (_(", {retransmissions} sent again").format(retransmissions=r["retransmissions"]) if r["retransmissions"] else "")
            + (_(", {lost} lost").format(lost=r["lost"]) if r["lost"] else "")
            + _("; simulated in {wall_s:.2g} s.").format(wall_s=r["wall_s"]),
        ]
    )
    told: list[Component] = [head, parts.cautions([("", r["cautions"])])]
    if r["outcome"] in OUTCOME_WORDS:
        told.append(html.P(_(OUTCOME_WORDS[r["outcome"]]), className="notice"))
    if r["computation"]:
        told.append(html.P(r["computation"][0].upper() + r["computation"][1:] + ".", className="soft", lang="en"))
    if r["outside"]:
        told.append(html.P(_("Outside the model's calibrated range: {outside}.").format(outside="; ".join(r["outside"])), className="soft"))
    if r["told"]:
        told.append(html.Pre("\n".join(r["told"]), id="replay-told", className="told", lang="en"))
    columns: list[Any]
    if r["cycle"]:
        caption = _("Each waits for the next one, the last for the first") if r["closed"] else _("Each waits for the next one")
        columns = [("process", _("process"), process_name), ("action", _("in")), ("file", _("file")), ("line", _("line")),
                   ("waits_for", _("waits for"), process_name)]
        told.append(parts.table(r["cycle"], columns, caption=caption, id="replay-cycle"))
    if r["waits"]:
        columns = [("rank", _("rank")), ("file", _("file")), ("line", _("line")), ("action", _("waits in")),
                   ("on", _("for"), parts.english)]
        which = _("Position of every rank") if len(r["waits"]) == r["waiting"] else _first(r["waits"], r["waiting"], _("waiting ranks"))
        told.append(parts.table(r["waits"], columns, caption=which, id="replay-waits"))
    return html.Div(told)


def _first(rows: Sequence[Any], of: int, what: str) -> str:
    return _("The first {n} of {of} {what}; 'retrompi replay' gives all").format(n=len(rows), of=count(of), what=what)


def _rank_tables(r: Mapping[str, Any]) -> Component:
    def share(v: float) -> str:
        return f"{100 * v:.1f} %"

    shown = {"s": (seconds,), "B": (format_bytes,)}
    ranks: list[Any] = [("rank", _("rank")), *((k, _(o.title), *shown.get(o.unit, ())) for k, o in outputs(RankRow).items())]
    some = "" if len(r["per_rank"]) == r["ranks"] else _first(r["per_rank"], r["ranks"], _("ranks"))
    out: list[Component] = [html.H2(_("Rank by rank")), parts.table(r["per_rank"], ranks, id="replay-ranks-table", caption=some)]
    if r.get("sums"):
        kinds = [k for k in dict.fromkeys(k for row in r["sums"] for k in row) if k not in ("process", "host")]
        columns: list[Any] = [("process", _("process"), process_name), ("host", _("host")), *((k, _(k), share) for k in kinds)]
        sums = parts.table(r["sums"], columns, id="replay-sums")
        out.append(html.Details([html.Summary(_("Fraction of the run in each state")), sums], open=len(r["sums"]) <= 24))
    if r["collectives"]:
        columns = [("operation", _("collective")), ("algorithm", _("algorithm")), ("calls", _("calls by all members"))]
        out.append(parts.table(r["collectives"], columns, caption=_("Algorithms of the collectives"), id="replay-collectives"))
    if r.get("notes"):
        out.append(html.P(_("Drawn from samples. ") + " ".join(r["notes"]), className="soft", id="replay-sampled"))
    return html.Div(out)


def register(app: Dash, resources: Resources) -> None:
    """Registers the callbacks: everything follows the controls; an upload is selected as soon as it is complete."""
    uploads_of(resources)
    parts.register_graph(app, "replay-bytes", "replay-messages")
    home_platform.register(app, "replay")

    @app.callback(
        *parts.outputs("replay-trace.options", "replay-trace.value", "replay-upload-said.children", "replay-upload.contents"),
        Input("replay-upload", "contents"), State("replay-upload", "filename"), prevent_initial_call=True,
    )
    def add_upload(contents: Any, filename: Any) -> Any:
        if contents is None:
            return no_update, no_update, no_update, no_update
        try:
            upload = resources.uploads.add(parts.session(), filename, contents)
        except UsageError as error:
            return no_update, no_update, parts.notices([str(error)]), None
        said = parts.uploaded_line(upload.label, upload.bytes)
        return options(resources, parts.session()), f"upload:{upload.id}", said, None

    @app.callback(Output("replay-made", "style"), Input("replay-trace", "value"))
    def generator_style(name: str | None) -> dict[str, str]:
        return {} if name in MADE else {"display": "none"}

    def begin(trace: str, model: str, platform: str, mode: str, ranks: int | None, size: str | None, sets: str | None) -> Any:
        # A post need not come from our controls: a model's name that is a path would be imported.
        given = (trace, model, platform, mode, ranks, size, sets)
        asked = wrong_entries.check_controls(PAGE.controls, {c.id: v for c, v in zip(PAGE.controls, given, strict=True)})
        with wrong_entries.beside_control("replay-set"):
            resolve(model, platform, sets_of(asked["set"]))
        path = label = ""
        if asked["trace"].startswith("upload:"):
            with wrong_entries.beside_control("replay-trace"):
                found, upload = resources.uploads.find(parts.session(), asked["trace"].removeprefix("upload:"))
            path, label = str(found), upload.label
        asked["size"] = _bytes(asked["size"])
        name = asked["trace"]
        made = _(MADE[name].label) if name in MADE else name
        told = _("Replay of {trace} on {model}").format(trace=label or made, model=registry.models()[model].title)
        return told, perform, (asked, path, label)

    def show(r: Any) -> Any:
        figures = r.get("figures", {})
        chart = timeline_frames.keep(resources, parts.session(), r["chart"]) if "chart" in r else ""
        drawn, matrix = ({} if has else {"display": "none"} for has in (chart, "bytes" in figures))
        return (_facts(r), drawn, chart, matrix, figures.get("bytes", pending()), figures.get("messages", pending()), _rank_tables(r))

    def blame(error: str, *given: Any) -> dict[str, str]:
        return wrong_entries.blame_values(error, {"replay-set": given[-1]})

    def show_failure(state: Any) -> Any:
        line = parts.notices([state.error]) if state.error else ""
        return line, {"display": "none"}, no_update, no_update, no_update, no_update, ""

    parts.register_job(
        app, resources, "replay", [Input(c.id, c.property) for c in PAGE.controls], begin,
        parts.outputs("replay-said.children", "replay-figures.style", "replay-timeline.src", "replay-matrix.style",
                      "replay-bytes.figure", "replay-messages.figure", "replay-tables.children"),
        show, failed=show_failure, blame=blame,
    )
