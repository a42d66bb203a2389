"""What tests ask of a page: its identifiers, its links, and what a browser would fetch for it."""

from __future__ import annotations

from html.parser import HTMLParser


class Page(HTMLParser):
    """``ids``, ``links`` (of every anchor, "None" without a target) and ``fetched`` of a page's text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if given.get("id"):
            self.ids.append(str(given["id"]))
        if tag == "a":
            self.links.append(str(given.get("href")))
        if "src" in given or "srcset" in given or (tag == "link" and given.get("href") != "data:,"):
            self.fetched.append(str(given))
