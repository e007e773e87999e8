"""Measure the CPU time that the host stole: evidence that does not depend on the nodes."""

from __future__ import annotations

from pathlib import Path

STAT = Path("/proc/stat")


class Watch:
    """A measurement of stolen CPU time since its creation; 0 if the kernel reports none."""

    def __init__(self, stat: Path = STAT) -> None:
        self._stat = stat
        self._before = self._read()

    def _read(self) -> tuple[int, int]:
        """Return the (stolen, total) clock ticks of all cores since boot.

        The columns for guests are excluded, because user time includes them.
        """
        try:
            columns = self._stat.read_text().splitlines()[0].split()[1:9]
        except (OSError, IndexError):
            return 0, 0
        ticks = [int(column) for column in columns]
        return (ticks[7] if len(ticks) == 8 else 0), sum(ticks)

    def stolen_share(self) -> float:
        """Return the share of all cores' time that other virtual machines used, 0 to 1."""
        stolen, total = self._read()
        return (stolen - self._before[0]) / max(1, total - self._before[1])
