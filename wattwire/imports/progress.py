"""Send the progress messages of readers to listeners."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

Listener = Callable[[str], None]
_LISTENERS: list[Listener] = []


def tell(text: str) -> None:
    """Send a short message about the current data to all listeners."""
    for listener in _LISTENERS:
        listener(text)


@contextlib.contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Call `listener` with every message of a reader within the block."""
    _LISTENERS.append(listener)
    try:
        yield
    finally:
        _LISTENERS.remove(listener)
