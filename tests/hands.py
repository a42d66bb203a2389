"""Hands on a lab's page: a keyboard and nothing else, which goes to a control by Tab, as often as it takes, or a finger on a phone's
screen, which taps what it sees. Both do the same things."""

from __future__ import annotations

import json
from typing import Any

from browser import until

MOST_STOPS = 250
_HERE = "(document.activeElement.closest('.dash-dropdown-content label')?.textContent.trim())"
"""The option that has the focus."""


LEAST_PX = 24
"""The least side of what a finger has to hit, by WCAG 2.2 (2.5.8)."""


class Keyboard:
    """Everything here fails where Tab does not lead to what it needs."""

    name = "keyboard"

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
        _stands(self.page, dropdown, option)
        if self.page.evaluate("document.querySelector('.dash-dropdown-content') !== null"):
            self.press("Escape")
        until(self.page, "document.querySelector('.dash-dropdown-content') === null")


class Finger:
    """Everything here fails where what is tapped is too small, beside the screen, or below something else."""

    name = "finger"

    def __init__(self, page: Any) -> None:
        self.page = page

    def act(self, control: Any) -> None:
        control.scroll_into_view_if_needed()
        box, wide = control.bounding_box(), self.page.viewport_size["width"]
        assert min(box["width"], box["height"]) >= LEAST_PX, f"a finger does not hit {box['width']:.0f} x {box['height']:.0f} px: {control}"
        assert box["x"] >= 0, f"{control} is beside the screen: {box}"
        assert box["x"] + box["width"] <= wide, f"{control} is beside the screen: {box}"
        control.tap()

    def write(self, entry: Any, text: str) -> None:
        """Writes into an entry, instead of what is in it; the phone's own keyboard is not part of this."""
        self.act(entry)
        until(self.page, "['INPUT', 'TEXTAREA'].includes(document.activeElement.tagName)")
        entry.evaluate("e => e.select()")
        self.page.keyboard.insert_text(text)

    def choose(self, group: Any, choice: str) -> None:
        """One of several radio buttons, by its label."""
        wanted = f"input[type=radio][value={_quoted(choice)}]"
        self.act(group.locator("label", has=self.page.locator(wanted)))
        assert group.locator(wanted).is_checked(), choice

    def select(self, dropdown: Any, option: str) -> None:
        """An option of a dropdown; it is closed when the choice stands there."""
        self.act(dropdown)
        until(self.page, "document.querySelector('.dash-dropdown-content label') !== null")
        offered = self.page.locator(".dash-dropdown-content label")
        self.act(offered.nth([text.strip() for text in offered.all_inner_texts()].index(option)))
        _stands(self.page, dropdown, option)
        until(self.page, "document.querySelector('.dash-dropdown-content') === null")


HANDS = {hands.name: hands for hands in (Keyboard, Finger)}


def _stands(page: Any, dropdown: Any, option: str) -> None:
    """Waits until a dropdown shows what was chosen."""
    for _ in range(500):
        if option in dropdown.inner_text():
            return
        page.wait_for_timeout(20)
    raise AssertionError(f"'{option}' was chosen, and '{dropdown.inner_text()}' stands there")


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
