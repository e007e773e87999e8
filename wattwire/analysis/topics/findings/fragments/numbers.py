"""Find runs in which the kernel discarded datagrams because fragments of them were missing.

What it detects, how, and what it misses: `datagrams.py`, with the counter UNASSEMBLED. If the
counter did not grow, the result has what the links did to frames.

A datagram that exceeds the MTU travels in fragments, and all of them must be in memory at the same
time. If a fragment is lost on the network, the others hold this memory for `ipfrag_time` (30 s by
default); more memory than `ipfrag_high_thresh` makes the kernel discard further datagrams, whose
fragments all arrived.

The counter of discarded datagrams (`datagrams.py`) misses datagrams whose missing fragment is
discarded only after the run; the link emulator's log has the fates of their frames. The counter
does not distinguish missing fragments from missing memory; only a run with a higher limit does.

Reference: Linux Documentation/networking/ip-sysctl.rst, "IP Fragmentation".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wattwire.analysis.dataset import Evidence, column
from wattwire.analysis.topics.findings.datagrams import UNASSEMBLED, Drops, drops
from wattwire.analysis.topics.findings.detector import Detected, Searched


@dataclass(frozen=True)
class Discards:
    """Runs with discarded datagrams, of which only a campaign with other limits shows the cause."""

    drops: Drops
    is_shown: bool = False


@dataclass(frozen=True)
class FramesDropped:
    """Mean shares of frames that the queues of emulated links dropped, and that were lost."""

    queue_share: float
    lost_share: float


@dataclass(frozen=True)
class Fragments(Detected):
    """The finding over all valid runs, if there is one. `counted` runs have the counter.

    `frames` is None if there is a finding, or if no run has dropped or lost frames.
    """

    found: tuple[Discards, ...] = ()
    counted: int = 0
    frames: FramesDropped | None = None


def fragments(searched: Searched) -> Fragments:
    """Search the valid runs for datagrams discarded during reassembly."""
    discarded = drops(searched.evidence, UNASSEMBLED)
    if discarded is None:
        return Fragments()
    if not discarded.runs:
        return Fragments(counted=discarded.counted, frames=frames_dropped(searched.evidence))
    return Fragments((Discards(discarded),), discarded.counted)


def frames_dropped(evidence: Evidence) -> FramesDropped | None:
    """Return the mean shares of frames that the emulated links' queues dropped, and lost at random.

    The result is None if no run has dropped or lost frames.
    """
    shares = [
        column(evidence.usable, name) for name in ("link_queue_full_share", "link_lost_share")
    ]
    means = [float(np.mean(known)) if (known := v[np.isfinite(v)]).size else 0.0 for v in shares]
    return FramesDropped(*means) if sum(means) > 0 else None
