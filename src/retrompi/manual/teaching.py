"""A page for every lab (what it teaches, never its answers), and one for the studio: its pages, keys and limits."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from retrompi.base.units import format_bytes, format_time
from retrompi.labs.lab import Lab, labs
from retrompi.manual.book import chapters_of
from retrompi.manual.markdown import ManualPage, escape, link, slug, table
from retrompi.studio.app import KEYS
from retrompi.studio.jobs.limits import Limits
from retrompi.studio.requests.page import pages as studio

__all__ = ["lab_pages", "studio_pages"]


def _lab(lab: Lab) -> ManualPage:
    points = sum(t.points for t in lab.tasks)
    goals = [[escape(g.text), escape(g.topic), escape(g.area), escape(g.bloom)] for g in lab.goals]
    own = [[f"`{p.name}`", escape(p.about or ""), str(len(p.values))] for p in lab.parameters]
    tasks = [[f"`{t.id}`", escape(t.kind), f"{t.points:g}", ", ".join(f"`{a}`" for a in t.after)] for t in lab.tasks]
    rules = ", ".join(link(c.title, f"../specification/{c.file}.md") for c in chapters_of(lab.key))
    needs = f" Beside retrompi it needs {escape(', '.join(lab.needs))}." if lab.needs else ""
    out = [
        f"# Lab {lab.key}: {escape(lab.title)}",
        f"{escape(lab.summary)}. {lab.minutes} minutes, {len(lab.tasks)} tasks, {points:g} points.{needs}",
        f"`retrompi lab start {lab.key} --student NAME` begins it.",
        *([f"The rules behind it, in prose and code: {rules}."] if rules else []),
        "## What it teaches",
        "Topics and levels (K know, C comprehend, A apply) are those of the TCPP curriculum, version 1 (2012).",
        table(["goal", "topic", "area", "level"], goals),
        "## Numbers of each student's own",
        table(["parameter", "what it is", "values"], own),
        "## Tasks",
        "Predictions are sealed before the tasks after them are checked.",
        table(["task", "kind", "points", "after"], tasks),
    ]
    return ManualPage(f"reference/labs/{slug(lab.name)}.md", "Labs", lab.name, "\n\n".join(out) + "\n")


def lab_pages() -> list[ManualPage]:
    """An overview and a page for every lab."""
    found = labs()
    rows = [
        [
            link(lab.key, f"{slug(lab.name)}.md"),
            escape(lab.title),
            str(lab.minutes),
            str(len(lab.tasks)),
            escape(", ".join(lab.needs)),
            escape(lab.summary),
        ]
        for lab in found
    ]
    out = [
        "# Labs",
        "Each is a folder in `labs/`; [about them](../../labs.md), [a session](../../howto/lab-session.md).",
        table(["lab", "title", "minutes", "tasks", "needs", "about"], rows),
    ]
    return [ManualPage("reference/labs/index.md", "Labs", "Overview", "\n\n".join(out) + "\n"), *map(_lab, found)]


def _limit(name: str, value: Any) -> str:
    if is_dataclass(value):  # the bounds of a simulation
        return ", ".join(f"{f.name.rpartition('_')[0] or f.name} {_limit(f.name, getattr(value, f.name))}" for f in fields(value))
    return format_bytes(value) if name.endswith("_B") else format_time(value) if name.endswith("_s") else str(value)


_BY_MACHINE = ("running", "long", "memory_B")
"""Limits that depend on the machine."""


def studio_pages() -> list[ManualPage]:
    """One page: what the studio shows, by which keys, and its limits per user."""
    limits = [[f"`{f.name}`", _limit(f.name, getattr(Limits(), f.name))] for f in fields(Limits) if f.name not in _BY_MACHINE]
    out = [
        "# The studio",
        "`retrompi studio` starts it and prints its address; [its options](commands/studio.md), [how to use it](../howto/studio.md).",
        "## Pages",
        table(["page", "address", "what it shows"], [[escape(p.title), f"`{p.path}`", escape(p.help)] for p in studio()]),
        "## Keys",
        table(["key", "description"], [[escape(k), escape(v)] for k, v in KEYS]),
        "## Limits",
        "Of an upload, a request, a job (time, memory, answer), its simulations, and of how many there may be.",
        table(["limit", "value"], limits),
    ]
    return [ManualPage("reference/studio.md", "Studio", "Studio", "\n\n".join(out) + "\n")]
