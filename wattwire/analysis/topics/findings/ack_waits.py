"""Detect latency modes at 40 or 80 ms, which waits for acknowledgements may cause.

What it detects: treatments with a latency mode at 36 to 56 ms or 80 to 104 ms. These are one or two
waits, each rounded up to the kernel's timer tick, plus the call itself, which takes 5 ms in some
libraries.

How: `stats.mode_between` on each treatment's latencies.

What it misses: a mode with less than 1 % of the messages. Runs are skipped if their nodes report
another transport or a setting that disables the delay, or no transport for a middleware without
such a setting. A handler that takes 40 ms causes the same mode.

Reference: RFC 896; RFC 9293 §3.7.4 and §3.8.6.3; Linux include/net/tcp.h, TCP_DELACK_MIN.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wattwire import stats
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.topics.findings.runs import Run, Treatment, by_treatment, settings_with
from wattwire.model.setting_purposes import NAGLE_OFF, QUICK_ACK

BANDS_US = ((36_000.0, 56_000.0), (80_000.0, 104_000.0))
FAST_US = 20_000.0
ACKNOWLEDGED = re.compile(r"\b(mp)?tcp|websocket|\bwss?\b|\bhttp", re.IGNORECASE)


@dataclass(frozen=True)
class Hit:
    """A treatment with a mode in one of the bands; `inside` counts the messages in both bands."""

    treatment: Treatment
    runs: tuple[Run, ...]
    mode: stats.Mode
    inside: int


def in_mode(run: Run) -> float:
    """Return the share of a run's messages in the two bands."""
    inside = [(run.values_us >= low) & (run.values_us < high) for low, high in BANDS_US]
    return float(np.mean(inside[0] | inside[1]))


def hits_of(evidence: Evidence, runs: Sequence[Run]) -> list[Hit]:
    """Return the treatments with a mode that acknowledgements may cause, with the fuller band."""
    off_settings = _off_settings(evidence, runs)
    some_fast = any(run.p50_us < FAST_US for run in runs)
    hits = []
    for treatment, members in by_treatment(evidence, runs).items():
        possible = [
            run
            for run in members
            if _has_acknowledgements(evidence, run) and _may_wait(run, off_settings, some_fast)
        ]
        series = [run.values_us for run in possible]
        modes = [stats.mode_between(series, low, high) for low, high in BANDS_US]
        present = [mode for mode in modes if mode is not None]
        if present:
            fullest = max(present, key=lambda mode: mode.inside)
            inside = round(sum(in_mode(run) * run.values_us.size for run in possible))
            hits.append(Hit(treatment, tuple(possible), fullest, inside))
    return hits


def _off_settings(evidence: Evidence, runs: Sequence[Run]) -> list[str]:
    """Return the settings of the runs' middleware that disable the delay."""
    return [
        name
        for purpose in (NAGLE_OFF, QUICK_ACK)
        for name in settings_with(evidence, runs, purpose)
    ]


def _has_acknowledgements(evidence: Evidence, run: Run) -> bool:
    """Return whether a transport of the run is known to wait for acknowledgements of TCP.

    If no node reported its transport, a setting against the delay is the evidence of TCP.
    """
    if run.transports:
        return any(ACKNOWLEDGED.search(word) for word in run.transports)
    return bool(_off_settings(evidence, [run]))


def _may_wait(run: Run, off_settings: Sequence[str], some_fast: bool) -> bool:
    """Return whether the messages of this run may have waited for acknowledgements."""
    if any(run.in_force(name) in ({"yes"}, {"on"}) for name in off_settings):
        return False
    # Between hosts, 40 ms may be the latency of the network, unless another run is faster.
    return some_fast or len(run.hosts) < 2
