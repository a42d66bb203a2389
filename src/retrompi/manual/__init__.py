"""The generated reference of this documentation: a page for each model, platform, scenario, study, lab and command.

`pages` returns every page as Markdown. A new model, platform, scenario, study, lab or command gets its page without a change here.
"""

from __future__ import annotations

from retrompi.manual.book import book_pages
from retrompi.manual.commands import command_pages
from retrompi.manual.experiments import scenario_pages, study_pages
from retrompi.manual.files import file_pages
from retrompi.manual.markdown import ManualPage
from retrompi.manual.media import media_page
from retrompi.manual.models import model_pages
from retrompi.manual.platforms import platform_pages
from retrompi.manual.schema import schema_page
from retrompi.manual.sources import source_pages
from retrompi.manual.teaching import lab_pages, studio_pages

__all__ = ["ManualPage", "pages"]


def pages() -> list[ManualPage]:
    """Every page of the reference, in the order of the site's navigation."""
    return [
        *command_pages(),
        *model_pages(),
        media_page(),
        *platform_pages(),
        *scenario_pages(),
        *study_pages(),
        *lab_pages(),
        *studio_pages(),
        *file_pages(),
        schema_page(),
        *book_pages(),
        *source_pages(),
    ]
