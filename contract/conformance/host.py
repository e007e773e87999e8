"""How much of the machine its host took: evidence that no node's behaviour is part of."""

from __future__ import annotations

from pathlib import Path

STAT = Path("/proc/stat")


class Watch:
    """Measures from when it is made; where the kernel tells nothing, nothing was taken."""

    def __init__(self, stat: Path = STAT) -> None:
        self._stat = stat
        self._before = self._read()

    def _read(self) -> tuple[int, int]:
        """(stolen, all) clock ticks of all cores since the boot; guests' ticks are users' too."""
        try:
            words = self._stat.read_text().splitlines()[0].split()[1:9]
        except (OSError, IndexError):
            return 0, 0
        ticks = [int(word) for word in words]
        return (ticks[7] if len(ticks) == 8 else 0), sum(ticks)

    def stolen_share(self) -> float:
        """The share of all cores' time that other virtual machines had, 0 to 1."""
        stolen, whole = self._read()
        return (stolen - self._before[0]) / max(1, whole - self._before[1])
