"""Links that both engines can express, and what arrived of the frames that passed them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wattwire.model.links.profile import Direction, read_link

LINKS: Mapping[str, Mapping[str, Any]] = {
    "jitter": {"delay_ms": 20, "jitter_ms": 5, "reorders": True, "loss": 0.02},
    "bursts": {
        "delay_ms": 10,
        "bursts": {"enter": 0.01, "leave": 0.25, "loss_good": 0.001, "loss_bad": 0.9},
    },
    "rate": {"delay_ms": 20, "rate_mbit_s": 10, "queue_bytes": 300_000},
}
"""Name → keys of both directions. The kernel refuses a rate together with a loss or jitter."""
ENGINES = ("emulator", "kernel")


def networks() -> dict[str, dict[str, str]]:
    """Return the networks of the rig, which have a link and an engine each."""
    return {
        f"{link}-{engine}": {"link": link, "engine": engine} for link in LINKS for engine in ENGINES
    }


def is_limited(network: str) -> bool:
    """Return whether the link of a network has a rate."""
    return "rate_mbit_s" in LINKS[network.split("-")[0]]


def direction(link: str) -> Direction:
    """Return the parameters of a link, which both directions have."""
    document = {"title": "T", "summary": "S", "both": dict(LINKS[link])}
    return read_link(link, document, "link.toml", lambda _: "").up.segments[0].direction


def link_toml(name: str) -> str:
    """Return link.toml of a link."""
    lines = (f"{key} = {_value(value)}" for key, value in LINKS[name].items())
    return "\n".join(['title = "planted"', 'summary = "planted"', "[both]", *lines, ""])


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {part}" for key, part in value.items()) + " }"
    return json.dumps(value)


@dataclass(frozen=True)
class Passed:
    """The frames of a direction of a network. Times are in ms, of one clock, shape [arrived]."""

    is_lost: np.ndarray
    """Of each frame in the order of sending, shape [frames]."""
    sent_ms: np.ndarray
    arrived_ms: np.ndarray
    late_ms: np.ndarray
    """By how much the sender's timer was late."""
    overtaken: int
    """Frames that arrived after a frame that was sent later."""

    @property
    def lost(self) -> int:
        """Return the number of lost frames."""
        return int(np.count_nonzero(self.is_lost))

    @property
    def delays_ms(self) -> np.ndarray:
        """Return the delays from before the send call to the receiver's device."""
        delays: np.ndarray = self.arrived_ms - self.sent_ms
        return delays

    def ahead(self, delay_ms: float) -> np.ndarray:
        """Return the frames that were in the queue before each frame, with a link of this delay.

        They left it while the frame was there, so the result does not depend on the rate.
        """
        ordered = np.sort(self.arrived_ms)
        ends = np.searchsorted(ordered, self.arrived_ms)
        counts: np.ndarray = ends - np.searchsorted(ordered, self.sent_ms + delay_ms)
        return counts


def read_passed(folder: Path, name: str) -> Passed:
    """Return the frames of a direction of a network. Raise ValueError if one arrived twice."""
    sent, begin_ns, gap_ns = map(int, (folder / f"{name}.sent").read_text().split())
    arrivals = np.frombuffer((folder / f"{name}.arrivals").read_bytes(), "<u8").reshape(-1, 3)
    numbers, sent_ns, arrived_ns = arrivals.astype(np.int64).T
    if len(np.unique(numbers)) < len(numbers):
        raise ValueError(f"{folder.name} {name}: a frame arrived twice")
    is_lost = np.ones(sent, bool)
    is_lost[numbers] = False
    return Passed(
        is_lost,
        (sent_ns - begin_ns) / 1e6,
        (arrived_ns - begin_ns) / 1e6,
        (sent_ns - begin_ns - numbers * gap_ns) / 1e6,
        int(np.count_nonzero(numbers < np.maximum.accumulate(numbers))),
    )
