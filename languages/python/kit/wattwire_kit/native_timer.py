"""The schedule for ticks of a middleware's own timer (`pacing = native`, C-10)."""

from __future__ import annotations

from .schedule import NEVER_NS, NOT_DUE, Schedule


class NativeTimer(Schedule):
    """A schedule in which a tick takes the nearest slot; other slots are counted as skipped."""

    def take(self, now_ns: int) -> int:
        if now_ns < self._start_ns:
            return NOT_DUE
        late_ns = now_ns - self.due_ns + self.period_ns // 2
        ahead = min(late_ns // self.period_ns, self._end_seq - self._seq)
        if ahead < 0:
            return NOT_DUE
        self.skipped += ahead
        self._seq += ahead
        self.due_ns += ahead * self.period_ns
        # The nearest slot may be half a period ahead.
        return super().take(max(now_ns, self.due_ns))

    def look_ns(self) -> int:
        """Return NEVER_NS, because the timer's callback checks the schedule."""
        return NEVER_NS

    def birth_ns(self, now_ns: int) -> int:
        """Return one period before the next slot, when the cell must create a periodic timer."""
        first_ns = self._start_ns + self._phase_ns - self.period_ns
        behind_ns = max(0, now_ns - first_ns)
        return first_ns + -(-behind_ns // self.period_ns) * self.period_ns
