"""The page of a crate: from each published statement, or point of a study, to the parameters, the code, the runs and the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any
from urllib.parse import quote

from retrompi.base import units
from retrompi.base.errors import RetrompiError
from retrompi.crate import drawn
from retrompi.crate.container import sha256
from retrompi.crate.metadata import USES
from retrompi.render.document import html

__all__ = ["NAME", "page"]

NAME = "ro-crate-preview.html"
_SHORT = 12
"""Digits of a hash that the page shows; the whole is in the metadata."""

Row = Mapping[str, Any]


def _link(name: str, text: str = "") -> str:
    return f'<a href="{quote(name)}">{escape(text or name)}</a>'


def _at(mark: str, text: str) -> str:
    return f'<a href="#{quote(mark)}">{escape(text)}</a>'


def _code(digest: str) -> str:
    return f'<code title="{digest}">{digest[:_SHORT]}</code>'


def _number(value: Any, unit: str) -> str:
    if isinstance(value, int | float) and unit not in ("", "-"):
        try:
            return units.format_quantity(float(value), unit)
        except RetrompiError:
            return f"{value:g} {unit}"
    return "" if value is None else f"{value}"


def _span(low: Any, high: Any, unit: str) -> str:
    if low is None and high is None:
        return ""
    return f"{_number(low, unit) if low is not None else '…'} to {_number(high, unit) if high is not None else '…'}"


def page(record: Row, circumstances: Row, files: Mapping[str, bytes]) -> bytes:
    """The page, which loads nothing from elsewhere."""
    runs = {r["run"]: r for r in record["runs"]}
    body = [_head(record, circumstances)]
    if record["statements"]:
        body.append(_statements(record, runs))
    else:
        body.append(_points(record, runs))
    body += [_runs(record, circumstances), _parameters(record), _functions(record), _files(files)]
    return html.document(record["title"], "\n".join(body)).encode()


def _head(record: Row, about: Row) -> str:
    software, cited = record["software"], record.get("citation") or {}
    words = [s["verdict"]["word"] for s in record["statements"]]
    counts = [("Runs", str(len(record["runs"])), f"{sum(r['outcome'] == 'completed' for r in record['runs'])} completed"),
              ("Code", escape(software["version"]), escape(software["code_version"]))]
    if words:
        judged = f"{words.count('pass')} pass, {words.count('fail')} fail, {words.count('unjudged')} not judged"
        counts.insert(0, ("Statements", str(len(words)), judged))
    told = "; ".join(escape(str(t)) for t in (cited.get("authors"), cited.get("year"), cited.get("address")) if t)
    return (
        '<nav><a href="#statements">From sentence to verdict</a><a href="#runs">Runs</a><a href="#parameters">Parameters</a>'
        '<a href="#code">Code</a><a href="#files">Files</a></nav>'
        f'<h1>{escape(record["title"])}</h1><p class="soft">{told}</p>'
        f"<p>An evidence crate of the {record['kind']} <b>{escape(record['name'])}</b>, made on {escape(about['created'][:10])} by "
        f"{escape(about['agent'])}, under {escape(about['license'])}. "
        f"<code>retrompi crate verify</code> simulates every run again and compares every number and every byte.</p>{html.boxes(counts)}"
    )


def _statements(record: Row, runs: Mapping[int, Row]) -> str:
    head = ("Statement", "Printed", "Use", "Parameters", "Judged by", "Runs", "Verdict", "Simulated")
    rows = []
    for s in record["statements"]:
        verdict = s["verdict"]
        sets = sorted({runs[i]["parameters"] for i in s["runs"]})
        unit = "" if s["unit"] in ("", "-") else f" {s['unit']}"
        printed = f"<b>{escape(s['observable'])}: {escape(str(s['value']) + unit)}</b>"
        if s["low"] is not None or s["high"] is not None:
            printed += f'<br><small class="soft">read as {escape(_plain_span(s["low"], s["high"]))}{escape(unit)}</small>'
        printed += f'<br><small class="soft">{escape(s["where"])}: {escape(s["system"])}; {escape(s["configuration"])}</small>'
        judged = "<br>".join(
            f"{_at('function-' + f['name'], f['name'].removeprefix('retrompi.'))} {_code(f['sha256'])}" for f in s["functions"]
        )
        observed = verdict["observed"]
        seen = f"{observed:.4g} {verdict['unit']}" if isinstance(observed, int | float) else str(observed or "")
        rows.append(html.row(head, (
            (escape(s["id"]), "id"), printed, escape(USES.get(s["use"], s["use"]).partition(":")[0]),
            " ".join(_at(f"set-{n}", str(n)) for n in sets), judged, " ".join(_at(f"run-{i}", str(i)) for i in s["runs"]),
            (html.SIGN.get(verdict["word"], escape(verdict["word"])), verdict["word"]),
            f"{escape(seen)}{_over_draws(record, s)}<br><small class=\"soft\">{escape(verdict['note'])}</small>",
        ), mark=f"statement-{escape(s['id'])}"))
    return f'<h2 id="statements">From sentence to verdict</h2>{html.table(head, rows)}'


def _over_draws(record: Row, statement: Row) -> str:
    seen = statement.get("agreement")
    if seen is None:
        return ""
    unit = statement["verdict"]["unit"] or ""
    span = "" if seen["observed_low"] is None else f"; {seen['observed_low']:.4g} to {seen['observed_high']:.4g} {unit}".rstrip()
    over = f'<small class="soft">({escape(drawn.technique(record, seen["draws"]))})</small>'
    return f"<br>{escape(seen['agreement'])}: {seen['share']:.0%} of the draws pass{escape(span)} {over}"


def _plain_span(low: Any, high: Any) -> str:
    if low == high:
        return f"{low:g}"
    return f"{'…' if low is None else f'{low:g}'} to {'…' if high is None else f'{high:g}'}"


def _points(record: Row, runs: Mapping[int, Row]) -> str:
    axes = list(dict.fromkeys(k for r in record["rows"] for k in r["axes"]))
    told = {r["position"]: r for r in (record["intervals"] or {}).get("rows", ())}
    head = (*axes, "Outcome", "Run", "Parameters", "Time", *(("Interval",) if told else ()))
    rows = []
    for r in record["rows"]:
        run = runs.get(r["run"]) if r["run"] is not None else None
        linked = ("", "", "")
        if run is not None:
            time = "" if run["time_s"] is None else f"{run['time_s']:.6g} s"
            linked = (_at(f"run-{run['run']}", str(run["run"])), _at(f"set-{run['parameters']}", str(run["parameters"])), time)
        interval = told.get(r["position"], {})
        shown = "" if interval.get("low") is None else f"{interval['low']:.4g} to {interval['high']:.4g}"
        rows.append(
            html.row(head, (*(escape(str(r["axes"].get(a, ""))) for a in axes), escape(r["outcome"]), *linked, *((shown,) if told else ())))
        )
    return f'<h2 id="statements">From point to run</h2><p>{escape(record.get("question", ""))}</p>{html.table(head, rows)}'


def _runs(record: Row, about: Row) -> str:
    head = ("Run", "Model", "Platform", "Workload", "Changed", "Parameters", "Outcome", "Simulated time", "Made", "Identity")
    rows = []
    for r, when in zip(record["runs"], about["runs"], strict=True):
        changed = ", ".join(f"{k}={v}" for k, v in r["overrides"].items())
        rows.append(html.row(head, (
            str(r["run"]), f"{escape(r['model'])}<br>{_code(r['model_hash'])}", f"{escape(r['platform'])}<br>{_code(r['platform_hash'])}",
            f"{escape(r['workload'])}<br>{_code(r['workload_hash'])}", escape(changed), _at(f"set-{r['parameters']}", str(r["parameters"])),
            escape(r["outcome"]), "" if r["time_s"] is None else f"{r['time_s']:.9g} s", escape(when["end"][:19]), _code(r["identity"]),
        ), mark=f"run-{r['run']}"))
    return f'<h2 id="runs">Runs</h2>{html.table(head, rows)}'


def _parameters(record: Row) -> str:
    head = ("Parameter", "Value", "Sourced range", "Posterior, 90 %", "Source", "Meaning")
    out = ['<h2 id="parameters">Parameters</h2>']
    for each in record["parameters"]:
        rows = []
        for r in each["rows"]:
            unit, left = str(r.get("unit") or ""), r.get("posterior")
            seen = ""
            if left is not None:
                seen = f"{escape(_span(left['low'], left['high'], unit))}<br><small class=\"soft\">{escape(left['told'])}</small>"
            rows.append((escape(r["name"]), escape(str(r.get("text") or r["value"])), escape(_span(r.get("low"), r.get("high"), unit)),
                         seen, escape(str(r.get("source") or "")), escape(str(r.get("help") or ""))))
        name = f"parameters/set-{each['set']}.csv"
        summary = f"Set {each['set']}: {escape(each['model'])} on {escape(each['platform'])}, {len(rows)} parameters"
        out.append(f'<details id="set-{each["set"]}"><summary>{summary}</summary><p>{_link(name)}</p>{html.table(head, rows)}</details>')
    return "\n".join(out)


def _functions(record: Row) -> str:
    functions = {f["name"]: f for s in record["statements"] for f in s["functions"]}
    functions |= {f["name"]: f for m in record["models"] for f in m["functions"]}
    head = ("Function", "File", "Line", "SHA-256 of its source")
    rows = [html.row(head, (escape(n), escape(f["file"]), str(f["line"]), f"<code>{f['sha256']}</code>"), mark=f"function-{escape(n)}")
            for n, f in sorted(functions.items())]
    modules = html.table(("Module", "File", "SHA-256"), [(escape(c["module"]), escape(c["file"]), f"<code>{c['sha256']}</code>")
                                                         for c in record["code"]])
    return (f'<h2 id="code">Code</h2><p>The functions of the models and of the judging, by the SHA-256 of their source text.</p>'
            f"{html.table(head, rows)}<details><summary>Every module that the numbers come from, and the engine</summary>{modules}"
            "</details>")


def _files(files: Mapping[str, bytes]) -> str:
    rows = [(_link(n), (f"{len(files[n]):,}", "n"), f"<code>{sha256(files[n])}</code>") for n in sorted(files) if n != NAME]
    return f'<h2 id="files">Files</h2>{html.table(("File", "Bytes", "SHA-256"), rows)}'
