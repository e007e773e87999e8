"""Define the events that a running campaign emits and the CLI displays."""

from __future__ import annotations

from typing import Any, Protocol


class Progress(Protocol):
    """Interface of a receiver of a campaign's events.

    `kind` is campaign, building, run, phase, output (of a command, with undecodable bytes as
    surrogates), done, note or finished. It determines the fields, which are JSON values.
    """

    def event(self, kind: str, **fields: Any) -> None: ...
