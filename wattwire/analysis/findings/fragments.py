"""Find runs in which the kernel discarded datagrams during reassembly.

What it detects: valid or excluded runs in which `datagrams_unassembled` grew before their end.

How: the counter of the meter net_stack on all hosts. A datagram that exceeds the MTU travels in
fragments, and all of them must be in memory at the same time. A fragment that is lost on the
network holds this memory for `ipfrag_time` (30 s by default); more memory than
`ipfrag_high_thresh` makes the kernel discard further datagrams, whose fragments all arrived.

What it misses: datagrams whose missing fragment is discarded only after the run; the link
emulator's log has the fates of their frames. The counter does not distinguish missing fragments
from missing memory; only a run with a higher limit does.

Reference: Linux Documentation/networking/ip-sysctl.rst, "IP Fragmentation".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wattwire.analysis.dataset import Evidence, column
from wattwire.model.derived import FloatArray

UNASSEMBLED = "datagrams_unassembled"


@dataclass(frozen=True)
class Unassembled:
    """Number of runs with the counter, and per run with a growth: name, datagrams, lost messages.

    `datagrams` and `lost` have shape (runs,).
    """

    counted: int
    runs: tuple[str, ...]
    datagrams: FloatArray
    lost: FloatArray


def frames_dropped(evidence: Evidence) -> tuple[float, float] | None:
    """Return the mean shares of frames that the emulated links' queues dropped, and lost at random.

    The result is None if no run has dropped or lost frames.
    """
    shares = [
        column(evidence.usable, name) for name in ("link_queue_full_share", "link_lost_share")
    ]
    means = [float(np.mean(known)) if (known := v[np.isfinite(v)]).size else 0.0 for v in shares]
    return (means[0], means[1]) if sum(means) > 0 else None


def unassembled(evidence: Evidence) -> Unassembled | None:
    """Return the runs that discarded datagrams; None if no run has the counter."""
    frame = evidence.usable
    values = column(frame, UNASSEMBLED)
    counted = np.isfinite(values)
    if not counted.any():
        return None
    discarded = counted & (values > 0)
    names = np.array(frame["run"].to_list())
    lost = np.nan_to_num(column(frame, "lost"))
    return Unassembled(
        int(counted.sum()), tuple(names[discarded]), values[discarded], lost[discarded]
    )
