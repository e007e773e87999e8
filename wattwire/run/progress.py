"""Define the events of a running campaign, which the CLI displays."""

from __future__ import annotations

from typing import Any, Protocol


class Progress(Protocol):
    """Receiver of a campaign's events.

    `kind` is one of campaign, building, run, phase, done, note, finished; the fields depend on it
    and are all JSON values.
    """

    def event(self, kind: str, **fields: Any) -> None: ...
