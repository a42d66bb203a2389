"""The curve explorer: PingPong curves of several runtimes, with published statements and stored runs drawn over them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dash import Dash, Input, Output, State, dcc, html, no_update

from retrompi.base.errors import UsageError
from retrompi.base.translate import _, lazy, ngettext
from retrompi.base.units import format_bytes, parse_sizes
from retrompi.spec import registry
from retrompi.spec.declare.outcome import Outcome
from retrompi.spec.runtime.legend import COLOURS, legend
from retrompi.studio.anatomy.path_words import OUTCOME_WORDS
from retrompi.studio.cards.statements import GROUPS
from retrompi.studio.components import menus, parts, titles
from retrompi.studio.components.callbacks import callback, register_methods
from retrompi.studio.components.parameters import check_names, modes
from retrompi.studio.curves import runs
from retrompi.studio.curves.runs import UPLOAD
from retrompi.studio.curves.uploaded_curves import MOST_CURVES
from retrompi.studio.requests import inputs, wrong_entries
from retrompi.studio.requests.page import Page
from retrompi.studio.requests.state import Control, Query, choice, read, text
from retrompi.studio.requests.uploads import uploads_of

if TYPE_CHECKING:
    from dash.development.base_component import Component

    from retrompi.studio.jobs.resources import Resources

OWN = "own"
MOST_SIZES = 64
LARGEST_B = 64 << 20
SIGNS = {"pass": lazy("✓ pass"), "fail": lazy("✗ fail"), "unjudged": lazy("· unjudged")}
_COUNTED = {"pass": lazy("{n} pass"), "fail": lazy("{n} fail"), "unjudged": lazy("{n} not judged")}


def _sizes(value: str) -> str:
    """A list of sizes of limited length."""
    if value:
        wanted = parse_sizes(text(300)(value))
        if len(wanted) > MOST_SIZES or max(wanted) > LARGEST_B:
            raise UsageError(f"at most {MOST_SIZES} sizes up to {format_bytes(LARGEST_B)}", code="out-of-range")
    return value


def _coloured_models() -> list[str]:
    """The runtimes that have a colour of their own in every figure, by colour."""
    found = {legend(name).colour: name for name in registry.shipped_models()}
    return [found[i] for i in range(COLOURS) if i in found]


PAGE = Page(
    path="/curves",
    title=lazy("Curves"),
    order=10,
    help=lazy("One-way time and bandwidth over message size: runtimes, published statements, stored runs and measured curves."),
    controls=(
        Control("curves-models", "value", "model", _coloured_models(), choice(registry.model_names, "model")),
        Control("curves-platform", "value", "platform", "nt-pair", choice([OWN], "platform", menus.is_platform), "model"),
        Control("curves-modes", "value", "mode", ["shared"], text(60)),
        Control("curves-series", "value", "series", "bandwidth", choice(["time", "bandwidth"], "series")),
        Control("curves-y", "value", "y", "log", choice(["log", "linear"], "scale")),
        Control("curves-published", "value", "published", ["1"], choice(["1"], "value")),
        Control("curves-overlays", "value", "run", [], text(120)),
        Control("curves-sizes", "value", "sizes", "", _sizes),
    ),
    inputs={"curves-job.data": inputs.text(60)},
)


def _mode_options(platform: str, chosen: list[str]) -> list[dict[str, str]]:
    known = ["shared", "distributed"] if platform == OWN else modes(platform)
    return titles.modes([*known, *(m for m in chosen if m not in known)])


def _choices(resources: Resources, session: str) -> list[dict[str, str]]:
    """The dropdown options for overlays: the session's uploads first."""
    uploads = uploads_of(resources).of(session, "curve")
    own = [{"value": f"{UPLOAD}{u.id}", "label": _("your upload: {label}").format(label=u.label)} for u in uploads]
    return [*own, *runs.overlay_choices(resources.store)]


def _there(chosen: list[str], options: list[dict[str, str]]) -> list[str]:
    """The chosen entries without uploads that no longer exist."""
    known = {o["value"] for o in options}
    return [name for name in chosen if not name.startswith(UPLOAD) or name in known]


def layout(query: Query, resources: Resources) -> Component:
    """The controls as given by the query; the figure, the statements and the numbers below."""
    values, wrong = read(PAGE.controls, menus.with_platforms(query, PAGE.controls))
    platforms = [{"value": OWN, "label": _("each runtime's own (on which it was calibrated)")}, *menus.platforms(values["platform"])]
    stored = _choices(resources, parts.session())
    if len(there := _there(values["run"], stored)) < len(values["run"]):
        wrong.append(_("a measured curve of this link was uploaded in another browser session, or has been removed; upload it again"))
        values["run"] = there
    known = {o["value"] for o in stored}
    stored += [{"value": name, "label": runs.overlay_name(resources.store, name)} for name in values["run"] if name not in known]
    asked = [
        parts.controls(
            parts.menu(_("Runtimes"), "curves-models", menus.models(), values["model"], multi=True, clearable=True),
            parts.menu(_("Platform"), "curves-platform", platforms, values["platform"]),
            parts.menu(_("Modes"), "curves-modes", _mode_options(values["platform"], values["mode"]), values["mode"],
                       _("where the two ranks run"), multi=True, clearable=True),
            parts.group(_("Series"), dcc.RadioItems(parts.series(), values["series"], id="curves-series", inline=True)),
            html.Details([
                html.Summary(_("More: axis, sizes, stored and measured curves")),
                parts.controls(
                    parts.group(_("Vertical axis"), dcc.RadioItems(parts.scales(), values["y"], id="curves-y", inline=True)),
                    parts.group(_("Published statements"), dcc.Checklist([{"value": "1", "label": _("show")}], values["published"],
                                                                      id="curves-published", inline=True)),
                    parts.entry(_("Message sizes"), "curves-sizes", values["sizes"], _("e.g. 0,1KiB..1MiB:x2"),
                                placeholder=_("0 B to 4 MiB, doubling")),
                    parts.menu(_("Overlay stored runs and measured curves"), "curves-overlays", stored, values["run"], multi=True,
                               clearable=True, placeholder=_("none") if stored else _("none in the store")),
                ),
                *parts.upload_row("curves", _("Upload a measured curve"), resources.limits.upload_B,
                                  _("a CSV table (a size and a time or bandwidth per row), or output of NetPIPE, OSU, IMB, "
                                    "mpptest or mpi4py")),
            ], open=bool(values["run"] or values["sizes"]), className="more"),
        ),
    ]
    label = _("Curves of the runtimes over message size; the numbers are in the tables below")
    shown = [
        html.Div([parts.job_bar("curves"), parts.graph("curves-figure", label, numbers="curves-numbers")], className="held"),
        html.Div(id="curves-problems"),
        html.Div(id="curves-statements"),
        html.Div([html.H2(_("Numbers")), html.Button(_("Download CSV"), id="curves-csv", className="quiet", type="button")],
                 className="page-head"),
        html.Div(id="curves-numbers"),
        dcc.Download(id="curves-download"),
    ]
    return html.Div([parts.notices(wrong), parts.bench(asked, shown)])


def first(query: Query, resources: Resources) -> Any:
    """(the question as a job, its figure, whether it is the same for everybody) of a link, for `retrompi.studio.requests.first_answer`."""
    from retrompi.studio.curves import drawing

    values, _ = read(PAGE.controls, menus.with_platforms(query, PAGE.controls))
    if values["run"]:
        return None
    wanted = _question(resources, values["model"], values["platform"], values["mode"], [], values["sizes"])
    return wanted, lambda answer: drawing.curves_figure(answer, values["series"], values["y"], bool(values["published"])), True


def _question(resources: Resources, models: Any, platform: Any, chosen: Any, overlays: Any, sizes: Any) -> Any:
    """The controls' values as a job. Raises UsageError."""
    models, chosen, overlays = parts.texts(models), parts.texts(chosen), parts.texts(overlays)
    platform, sizes = parts.text(platform), parts.text(sizes)
    if platform != OWN:
        check_names(platform=platform)
    for model in models:
        check_names(model=model)
    wanted = [(m, _where(m, platform), mode) for m in models for mode in chosen]
    if len(wanted) + len(overlays) > MOST_CURVES:
        with wrong_entries.beside_control("curves-models"):
            many = len(wanted) + len(overlays)
            raise UsageError(f"{many} curves are too many for one figure; choose at most {MOST_CURVES}", code="too-many")
    with wrong_entries.beside_control("curves-sizes"):
        asked = parse_sizes(_sizes(sizes)) if sizes else None
    # A missing upload is reported in a line; the other curves are drawn all the same.
    files: dict[str, tuple[str, str]] = {}
    gone: list[str] = []
    for name in overlays:
        if name.startswith(UPLOAD):
            try:
                path, upload = uploads_of(resources).find(parts.session(), name.removeprefix(UPLOAD))
            except UsageError as error:
                gone.append(str(error))
            else:
                files[name] = (str(path), upload.label)
    there = [name for name in overlays if name in files or not name.startswith(UPLOAD)]
    title = ngettext("{n} curve", "{n} curves", len(wanted)).format(n=len(wanted))
    return title, runs.curves, (resources.places, wanted, asked, there, files, gone)


def _where(model: str, platform: str) -> str:
    return registry.own_platform(model) if platform == OWN else platform


class _Curves:
    """The callbacks of the page, and the job that simulates what it shows."""

    def __init__(self, resources: Resources) -> None:
        from retrompi.studio.curves import drawing

        self.resources = resources
        self.drawing = drawing  # loaded before the first question
        self.uploads = uploads_of(resources)

    @callback(
        *parts.outputs("curves-overlays.options", "curves-overlays.value", "curves-upload-said.children", "curves-upload.contents"),
        Input("curves-upload", "contents"), State("curves-upload", "filename"), State("curves-overlays", "value"),
        prevent_initial_call=True,
    )
    def add_upload(self, contents: Any, filename: Any, chosen: Any) -> Any:
        if contents is None:
            return no_update, no_update, no_update, no_update
        before = parts.texts(chosen)
        try:
            upload = self.uploads.add(parts.session(), filename, contents, "curve")
        except UsageError as error:
            return no_update, no_update, parts.notices([str(error)]), None
        said = parts.uploaded_line(upload.label, upload.bytes)
        options = _choices(self.resources, parts.session())
        return options, [*_there(before, options), f"{UPLOAD}{upload.id}"], said, None

    @callback(
        Output("curves-modes", "options"), Input("curves-platform", "value"), State("curves-modes", "value"), prevent_initial_call=True
    )
    def mode_options(self, platform: Any, chosen: Any) -> list[dict[str, str]]:
        return _mode_options(parts.text(platform), parts.texts(chosen))

    def begin(self, *asked: Any) -> Any:
        return _question(self.resources, *asked)

    def show(self, answer: dict[str, Any], series: str, y: str, published: list[str]) -> Any:
        lines = list(answer["problems"])
        for c in answer["curves"]:
            if c["outcome"] != Outcome.COMPLETED:
                lines.append(" ".join([c["detail"], _(OUTCOME_WORDS.get(c["outcome"], ""))]))
            if c["outside"]:
                beyond = "; ".join(c["outside"])
                whose = titles.runtime(c["model"])
                lines.append(_("{model} is outside its calibrated range: {outside}").format(model=whose, outside=beyond))
        figure = self.drawing.curves_figure(answer, series, y, bool(published))
        named = [(titles.of_curve(c), c["cautions"]) for c in answer["curves"]]
        named += [(o["name"], o.get("cautions", ())) for o in answer["overlays"]]
        homes = dict.fromkeys(f"{titles.runtime(c['model'])}: {titles.platform(c['platform'])}" for c in answer["curves"])
        on = [". ".join(homes)] if len({c["platform"] for c in answer["curves"]}) > 1 else []
        soft = [html.P(line, className="soft") for line in (*on, *answer["read"])]
        told = html.Div([parts.notices(lines), parts.cautions(named), *soft])
        return figure, told, _statements(answer) if published else None, _numbers(answer, series)

    @callback(
        Output("curves-download", "data"), Input("curves-csv", "n_clicks"), State("curves-job", "data"), prevent_initial_call=True
    )
    def download(self, _clicks: int, job: Any) -> Any:
        answer = self.resources.jobs.state(parts.text(job), parts.session()).result
        if answer is None:
            raise UsageError("there are no results yet")
        rows = [
            {"curve": name, "size_B": r["size_B"], "time_us": r["time_us"], "bandwidth_MBps": r["bandwidth_MBps"],
             "repetitions": r.get("repetitions")}
            for name, points in _curves_by_name(answer) for r in points
        ]
        return dcc.send_string(parts.csv_text(rows, ("curve", "size_B", "time_us", "bandwidth_MBps", "repetitions")), "curves.csv")


def register(app: Dash, resources: Resources) -> None:
    """Registers the callbacks: the figure follows the controls; curves are simulated in the background."""
    curves = _Curves(resources)
    register_methods(app, curves)
    parts.register_graph(app, "curves-figure")
    parts.register_job(
        app, resources, "curves",
        [Input(f"curves-{name}", "value") for name in ("models", "platform", "modes", "overlays", "sizes")],
        curves.begin,
        parts.outputs("curves-figure.figure", "curves-problems.children", "curves-statements.children", "curves-numbers.children"),
        curves.show,
        views=[Input("curves-series", "value"), Input("curves-y", "value"), Input("curves-published", "value")],
    )


def _curves_by_name(answer: dict[str, Any]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Every curve by a name that is unique in the figure."""
    made = answer["curves"]
    several = len({c["mode"] for c in made}) > 1
    found = [(titles.of_curve(c, several), c["rows"]) for c in made]
    return [
        *found,
        *(
            (
                _("run {run}: {name}").format(run=o["run"], name=o["name"]) if o["run"] else _("upload: {name}").format(name=o["name"]),
                o["rows"],
            )
            for o in answer["overlays"]
        ),
    ]


def _statements(answer: dict[str, Any]) -> Component | None:
    """The published statements about these curves, and whether these curves satisfy them."""
    if not answer["verdicts"]:
        return None
    rows = [
        {
            "id": v["id"], "what": parts.english(v["observable"]), "published": parts.english(v["published"]),
            "use": _(GROUPS.get(v["use"], v["use"])),
            "observed": parts.english(v["observed"] if isinstance(v["observed"], str) else f"{v['observed']:.4g} {v['unit']}"
                                      if v["observed"] is not None else ""),
            "verdict": html.Span(_(SIGNS.get(v["verdict"], v["verdict"])), className=v["verdict"]), "note": parts.english(v["note"]),
        }
        for v in answer["verdicts"]
    ]
    columns = (("id", _("statement")), ("what", _("about")), ("published", _("published")), ("observed", _("these curves")),
               ("verdict", _("verdict")), ("use", _("use")), ("note", _("note")))
    counts = {word: sum(v["verdict"] == word for v in answer["verdicts"]) for word in SIGNS}
    told = ", ".join(_(_COUNTED[word]).format(n=n) for word, n in counts.items() if n)
    return html.Details(
        [html.Summary(_("Published statements about these curves: {told}").format(told=told)), parts.table(rows, columns)], open=False
    )


def _numbers(answer: dict[str, Any], series: str) -> Component:
    """Some numbers of each curve, then the series at every size."""
    from retrompi.studio.curves.drawing import metric_rows, number_rows

    named = _curves_by_name(answer)
    wholes = [*answer["curves"], *({"rows": o["rows"], "outcome": Outcome.COMPLETED} for o in answer["overlays"])]
    head = [("what", "")] + [(name, name) for name, _curve in named]
    unit = "µs" if series == "time" else "MB/s"
    rows = number_rows(named, series)
    columns = [("size_B", _("size"), format_bytes), *((name, f"{name}, {unit}", lambda v: f"{v:.4g}") for name, _curve in named)]
    summary = metric_rows([(name, whole) for (name, _), whole in zip(named, wholes, strict=True)])
    return html.Div([
        parts.table(summary, head, id="curves-summary", stack=False), parts.table(rows, columns, id="curves-table", stack=False),
    ])
