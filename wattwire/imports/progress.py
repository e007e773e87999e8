"""Send progress messages of readers to listeners."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

Listener = Callable[[str], None]
_LISTENERS: list[Listener] = []


def tell(text: str) -> None:
    """Send a short message on the current data to all listeners, if any."""
    for listener in _LISTENERS:
        listener(text)


@contextlib.contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Call `listener` with every message of a reader while the block runs."""
    _LISTENERS.append(listener)
    try:
        yield
    finally:
        _LISTENERS.remove(listener)
