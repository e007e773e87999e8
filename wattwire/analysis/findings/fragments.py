"""Compute what the links did to fragments of datagrams.

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

import numpy as np

from wattwire.analysis.dataset import Evidence, column


def frames_dropped(evidence: Evidence) -> tuple[float, float] | None:
    """Return the mean shares of frames that the emulated links' queues dropped, and lost at random.

    The result is None if no run has dropped or lost frames.
    """
    shares = [
        column(evidence.usable, name) for name in ("link_queue_full_share", "link_lost_share")
    ]
    means = [float(np.mean(known)) if (known := v[np.isfinite(v)]).size else 0.0 for v in shares]
    return (means[0], means[1]) if sum(means) > 0 else None
