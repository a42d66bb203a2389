"""Griffe extension: examples of docstrings become blocks of code, without the directives of doctest."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

_EXAMPLE = re.compile(r"^>>> .*(?:\n(?!\n).+)*", re.M)


class Examples(Extension):
    """Fences what begins with ``>>>``."""

    def on_instance(self, *, obj: Object, **_: Any) -> None:
        """Change the docstring of every object that has one."""
        if obj.docstring is not None:
            plain = re.sub(r" *# doctest:.*$", "", obj.docstring.value, flags=re.M)
            obj.docstring.value = _EXAMPLE.sub(lambda m: f"```pycon\n{m[0]}\n```", plain)
