"""Text on datagrams discarded during reassembly. See `analysis/findings/fragments.py`
and `datagrams.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from wattwire.analysis.dataset import Evidence
from wattwire.analysis.findings.datagrams import UNASSEMBLED, drops
from wattwire.analysis.findings.fragments import frames_dropped
from wattwire.report.findings.finding import Detector, Finding, Searched, Silence
from wattwire.report.findings.socket_buffers import drops_table
from wattwire.report.words.phrases import Phrases

PHRASES = Phrases(
    "fragments",
    {
        "title": "Datagrams discarded during reassembly",
        "cause": (
            "A datagram above the MTU travels in fragments, and the kernel keeps them until all "
            "have arrived. If a fragment is lost, the others hold memory for ipfrag_time. If the "
            "fragments need more memory than ipfrag_high_thresh, the kernel also discards "
            "datagrams of which no fragment was lost. Without retransmissions, each discarded "
            "datagram is a lost message or a part of one."
        ),
        "summary": (
            "In {runs:plural run} of {counted}, the kernel discarded {datagrams:plural datagram} "
            "during reassembly. {lost:plural message/messages} of these runs were lost."
        ),
        "confirm": (
            "To confirm the limit as the cause, raise net.ipv4.ipfrag_high_thresh on the receiving "
            "host (for example to 128 MiB), lower net.ipv4.ipfrag_time to 3 s, measure again and "
            "compare the two campaigns. If the datagrams remain, the link lost the fragments; "
            "then use messages below the MTU or a middleware that fragments by itself."
        ),
        "table": "Runs with datagrams discarded during reassembly",
        "datagrams": "datagrams discarded",
        "not_counted": (
            "Losses in reassembly were not tested, because no run has the counter of the meter "
            "net_stack."
        ),
        "silent": (
            "The kernel discarded no datagram during reassembly before the runs ended "
            "({counted:plural run}).{frames}"
        ),
        "frames": (
            " It keeps an incomplete datagram for ipfrag_time, so datagrams that lost a fragment "
            "may not be counted: the links' queues dropped {queue:percent} of all frames (queue "
            "full), and the links lost {lost:percent} at random."
        ),
    },
)


def find(evidence: Evidence) -> Finding | Silence:
    """Return the finding over all runs, or the reason for its absence."""
    discarded = drops(evidence, UNASSEMBLED)
    if discarded is None:
        return Silence(PHRASES("not_counted"))
    if not discarded.runs:
        shares = frames_dropped(evidence)
        frames = PHRASES("frames", queue=shares[0], lost=shares[1]) if shares else ""
        return Silence(PHRASES("silent", counted=discarded.counted, frames=frames))
    summary = PHRASES(
        "summary",
        runs=len(discarded.runs),
        counted=discarded.counted,
        datagrams=int(discarded.datagrams.sum()),
        lost=int(discarded.lost.sum()),
    )
    return Finding(
        "unassembled-datagrams",
        PHRASES("title"),
        False,
        PHRASES("cause"),
        (summary,),
        PHRASES("confirm"),
        (
            drops_table(
                evidence,
                discarded,
                "finding-unassembled-datagrams",
                PHRASES("table"),
                PHRASES("datagrams"),
            ),
        ),
    )


def _detect(searched: Searched) -> Sequence[Finding | Silence]:
    return [find(searched.evidence)]


DETECTOR = Detector(40, _detect)
