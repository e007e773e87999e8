"""Find runs in which the kernel dropped datagrams because a socket's buffer was full.

What it detects, how, and what it misses: `datagrams.py`, with the counter DROPPED. The finding is
shown if each of several such runs lost as many messages as the kernel dropped datagrams.

Reference: Linux Documentation/networking/snmp_counter.rst, "UdpRcvbufErrors".
"""

from __future__ import annotations

from dataclasses import dataclass

from wattwire.analysis.topics.findings.datagrams import DROPPED, Drops, drops
from wattwire.analysis.topics.findings.detector import Detected, Searched
from wattwire.analysis.topics.findings.runs import settings_with
from wattwire.model.setting_purposes import RECEIVE_BUFFER_BYTES


@dataclass(frozen=True)
class FullBuffers:
    """Runs with dropped datagrams. `settings` are those of the middleware for a larger buffer."""

    drops: Drops
    settings: tuple[str, ...] = ()

    @property
    def explains_all(self) -> bool:
        """Whether each of these runs lost as many messages as the kernel dropped datagrams."""
        return self.drops.equal == len(self.drops.runs)

    @property
    def is_shown(self) -> bool:
        """Whether the two counts agree in each run; in one run, they may agree by chance."""
        return self.explains_all and len(self.drops.runs) > 1


@dataclass(frozen=True)
class SocketBuffers(Detected):
    """The finding over all valid runs, if there is one. `counted` runs have the counter."""

    found: tuple[FullBuffers, ...] = ()
    counted: int = 0


def socket_buffers(searched: Searched) -> SocketBuffers:
    """Search the valid runs for dropped datagrams."""
    dropped = drops(searched.evidence, DROPPED)
    if dropped is None:
        return SocketBuffers()
    if not dropped.runs:
        return SocketBuffers(counted=dropped.counted)
    names = settings_with(searched.evidence, searched.runs, RECEIVE_BUFFER_BYTES)
    settings = tuple(f"settings.{name}" for name in names)
    return SocketBuffers((FullBuffers(dropped, settings),), dropped.counted)
