"""Store how long a cell's server takes for its own client and for clients of other cells.

`wattwire check CELL` measures it. Campaigns copy it, and their pages name a server that is much
slower for strangers: a cell's own client may write or acknowledge in a way that no user's does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wattwire.rig import cache
from wattwire.rig.build_notes import noted, write_note

SLOWER_FROM = 3.0
"""A server is slower for a stranger from this ratio, both to its own client's latency and to the
latency of the stranger with the stranger's own server."""


@dataclass(frozen=True)
class StrangerCalls:
    """Median latencies (µs) of a server's calls, for its own client and for clients of other cells.

    `strangers_us` and `at_home_us` map each other cell to its client's median latency with this
    server and with its own server. `tuned_us` is the median with the first slow stranger if the
    setting `tuned` disables Nagle's algorithm at both ends; None if there is no slow stranger or no
    such setting.
    """

    own_us: float
    strangers_us: Mapping[str, float]
    at_home_us: Mapping[str, float]
    day: str
    tuned: str = ""
    tuned_us: float | None = None

    @property
    def slower_us(self) -> dict[str, float]:
        """The strangers for which the server is slower, with their median latencies (µs)."""
        return {
            name: latency_us
            for name, latency_us in self.strangers_us.items()
            if latency_us > SLOWER_FROM * max(self.own_us, self.at_home_us[name])
        }


def stranger_calls(build_key: str) -> StrangerCalls | None:
    """Return what was measured with this build on this host, or None."""
    try:
        document = noted(cache.STRANGER_CALLS, build_key)
        return None if document is None else StrangerCalls(**document)
    except TypeError:
        return None


def note_stranger_calls(build_key: str, calls: StrangerCalls) -> None:
    """Store what was measured with a build. It replaces an earlier measurement."""
    write_note(cache.STRANGER_CALLS, build_key, calls)
