"""Every row of the reference that a source can name, on one page, so that a number's source is one click away."""

from __future__ import annotations

from retrompi.manual.markdown import ManualPage, escape, slug
from retrompi.papers.statements.sources import rows

__all__ = ["source_pages"]


def source_pages() -> list[ManualPage]:
    """One page: an entry for every claim and every row of ``hardware.csv`` and ``period/evidence.csv``."""
    out = [
        "# Sources",
        "Every number of a model or a platform says where it is from: `paper:` and `doc:` and `code:` name a row below (or a document), "
        "`fit:` was found by a calibration, `assumed:` says on what ground. Statements marked as held out are hidden from every fit.",
    ]
    for name, row in rows().items():
        use = f" *{escape(row.use)}.*" if row.use else ""
        note = f" Note: {escape(row.note)}" if row.note else ""
        out.append(f'<a id="{slug(name)}"></a>**{escape(name)}** {escape(row.text)}. In: {escape(row.where)}.{use}{note}')
    return [ManualPage("reference/sources.md", "Sources", "Sources", "\n\n".join(out) + "\n")]
