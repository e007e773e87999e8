"""How a reader says what it is at, to whoever listens."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

Listener = Callable[[str], None]
_LISTENERS: list[Listener] = []


def tell(text: str) -> None:
    """Say in a few words what is being read now; nothing happens where nobody listens."""
    for listener in _LISTENERS:
        listener(text)


@contextlib.contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Let `listener` hear what readers tell while the block runs."""
    _LISTENERS.append(listener)
    try:
        yield
    finally:
        _LISTENERS.remove(listener)
