"""A student who has a keyboard and nothing else: goes to a control by Tab, as often as it takes, and acts on it by keys."""

from __future__ import annotations

import json
from typing import Any

from browser import until

MOST_STOPS = 250
_HERE = "(document.activeElement.closest('.dash-dropdown-content label')?.textContent.trim())"
"""The option that has the focus."""


class Keyboard:
    """Hands on a keyboard before a lab's page. Everything here fails where Tab does not lead to what it needs."""

    def __init__(self, page: Any) -> None:
        self.page = page

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def to(self, control: Any) -> None:
        """Goes on by Tab, round the page if need be, until the control has the focus."""
        element = control.element_handle()
        for _ in range(MOST_STOPS):
            if self.page.evaluate("e => document.activeElement === e", element):
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"{MOST_STOPS} times Tab do not lead to {control}")

    def act(self, control: Any, key: str = "Enter") -> None:
        self.to(control)
        self.press(key)

    def write(self, entry: Any, text: str) -> None:
        """Writes into an entry, instead of what is in it."""
        self.to(entry)
        self.press("Control+a")
        self.page.keyboard.insert_text(text)

    def choose(self, group: Any, choice: str) -> None:
        """One of several radio buttons: Tab leads to their group, arrows go from one to the next."""
        wanted = group.locator(f"input[type=radio][value={_quoted(choice)}]")
        count = group.locator("input[type=radio]").count()
        first = group.locator("input[type=radio]:checked")
        self.to(first if first.count() else group.locator("input[type=radio]").first)
        for _ in range(count):
            if self.page.evaluate("e => document.activeElement === e", wanted.element_handle()):
                break
            self.press("ArrowDown")
        self.press("Space")
        assert wanted.is_checked(), choice

    def select(self, dropdown: Any, option: str) -> None:
        """An option of a dropdown: it opens by Enter, arrows go through its options. It is closed when the choice stands there."""
        self.act(dropdown)
        here = until(self.page, _HERE)
        for _ in range(40):
            if here == option:
                break
            self.press("ArrowDown")
            # Dash moves the focus in a later frame: the next key would go one option too far.
            here = until(self.page, f"{_HERE} !== {json.dumps(here)} && {_HERE}")
        else:
            raise AssertionError(f"arrows do not lead to '{option}'")
        self.press("Enter" if self.page.evaluate("document.activeElement.tagName !== 'INPUT'") else "Space")
        for _ in range(500):
            if option in dropdown.inner_text():
                break
            self.page.wait_for_timeout(20)
        else:
            raise AssertionError(f"'{option}' was chosen, and '{dropdown.inner_text()}' stands there")
        if self.page.evaluate("document.querySelector('.dash-dropdown-content') !== null"):
            self.press("Escape")
        until(self.page, "document.querySelector('.dash-dropdown-content') === null")


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
