"""A page for every scenario and every study, from its file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from retrompi.manual.markdown import ManualPage, cite, escape, link, slug, table
from retrompi.papers.statements.sources import rows as reference_rows
from retrompi.spec import registry
from retrompi.studies.execute import design

__all__ = ["scenario_pages", "study_pages"]

_ROOT = "../"


def _where(model: str, platform: str) -> list[str]:
    """Links to a model's and a platform's page; any other name stays plain text."""
    out = []
    for name, kind, names in ((model, "models", registry.models()), (platform, "platforms", registry.platforms())):
        out.append(link(name, f"../{kind}/{slug(name)}.md") if name in names else escape(name))
    return out


def _file(text: str) -> str:
    return f"```toml\n{text.rstrip()}\n```"


def _scenario(name: str, known: Mapping[str, Any]) -> ManualPage:
    from retrompi.studies.define import catalogue

    s = catalogue.scenario(name)
    model, platform = _where(s.model, s.platform)
    facts = [["model", model], ["platform", platform], ["mode", f"`{s.mode}`"], ["reproduces", cite(s.reproduces, known, _ROOT)],
             ["statements", ", ".join(cite(c, known, _ROOT) for c in s.claims)], ["expected", escape(s.expect)],
             ["ends as", escape(s.outcome)]]
    text = s.path.read_text(encoding="utf-8") if s.path is not None else ""
    out = [f"# {escape(s.title)}", f"{escape(s.summary)}.", table(["", ""], facts), "## The file", _file(text),
           f"`retrompi scenarios run {name}` runs it, `retrompi sweep {name} --vary KEY=VALUES` varies it."]
    return ManualPage(f"reference/scenarios/{slug(name)}.md", "Scenarios", name, "\n\n".join(out) + "\n")


def scenario_pages() -> list[ManualPage]:
    """An overview and a page for every scenario."""
    from retrompi.studies.define import catalogue
    from retrompi.traces import generate

    known = reference_rows()
    rows = []
    for name, s in catalogue.scenarios().items():
        rows.append([link(name, f"{slug(name)}.md"), escape(s.title), *_where(s.model, s.platform), cite(s.reproduces, known, _ROOT)])
    text = "\n\n".join([
        "# Scenarios",
        "One experiment in one file of `scenarios/`; [the keys](../files.md#scenario).",
        table(["name", "experiment", "model", "platform", "reproduces"], rows),
        "## Generators",
        "Programs that are generated: `retrompi why halo ranks=4 reps=3 size=10000`, or `generator` in the `[trace]` of a file. Arguments "
        "in brackets have defaults; `retrompi scenarios new mine.toml halo` writes a file to be edited.",
        table(["generator", "arguments", "what it generates"],
              [[f"`{name}`", f"`{g.usage}`", escape(g.summary)] for name, g in sorted(generate.GENERATORS.items())]),
    ])
    return [
        ManualPage("reference/scenarios/index.md", "Scenarios", "Overview", text + "\n"),
        *(_scenario(n, known) for n in catalogue.scenario_names()),
    ]


def _base(name: str) -> str:
    """The location of a study's scenario: a page, or a table of the study's own file."""
    from retrompi.studies.define import catalogue

    return link(name, f"../scenarios/{slug(name)}.md") if name in catalogue.scenario_names() else "its own `[base]`"


def _study(name: str) -> ManualPage:
    study = design.study(name)
    axes = [[f"`{a.key}`", escape(", ".join(a.given) if not isinstance(a.given, str) else a.given), str(len(a))] for a in study.axes]
    out = [f"# {escape(study.title or name)}", f"**Question.** {escape(study.question)}", f"**Run.** {escape(study.summary)}",
           f"{design.count(study)} points from {_base(study.base.name)}, "
           f"shown by `{study.metric or 'time'}`.",
           table(["axis", "values", "how many"], axes), "## The file", _file(study.text),
           f"`retrompi study run {name}` simulates it, `retrompi study show {name} -o page.html` draws it."]
    return ManualPage(f"reference/studies/{slug(name)}.md", "Studies", name, "\n\n".join(out) + "\n")


def study_pages() -> list[ManualPage]:
    """An overview and a page for every predefined study."""
    rows = [
        [link(name, f"{slug(name)}.md"), escape(s.title), escape(s.question), str(design.count(s))]
        for name, s in design.studies().items()
    ]
    text = "\n\n".join([
        "# Ready studies",
        "A parameter study: a file of `scenarios/studies/`; [the keys](../files.md#study), [three examples discussed](../../what-ifs.md).",
        table(["name", "study", "question", "points"], rows),
    ])
    return [ManualPage("reference/studies/index.md", "Studies", "Overview", text + "\n"), *(_study(n) for n in design.study_names())]
