"""Callbacks that are methods: what each of them listens to stands above it, and the object of its class has what they share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from dash import Dash

__all__ = ["callback", "register_methods"]

F = TypeVar("F", bound=Callable[..., Any])
_WIRING = "callback_wiring"


def callback(*wiring: Any, **options: Any) -> Callable[[F], F]:
    """Makes a method the callback of these outputs, inputs and states, as ``app.callback`` does; `register_methods` registers it."""

    def mark(method: F) -> F:
        setattr(method, _WIRING, (wiring, options))
        return method

    return mark


def register_methods(app: Dash, page: object) -> None:
    """Registers the callbacks among the methods of ``page``, in their order."""
    for name, method in vars(type(page)).items():
        if hasattr(method, _WIRING):
            wiring, options = getattr(method, _WIRING)
            app.callback(*wiring, **options)(getattr(page, name))
