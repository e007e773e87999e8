"""The schedule where a middleware's own timer gives the ticks (`pacing = native`, C-10)."""

from __future__ import annotations

from .schedule import NEVER_NS, NOT_DUE, Schedule


class NativeTimer(Schedule):
    """A tick takes the nearest slot; slots that no tick came near are counted as skipped."""

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
        """Return never: the timer's callback looks."""
        return NEVER_NS

    def birth_ns(self, now_ns: int) -> int:
        """Return when a periodic timer must be created: one period before the next slot."""
        first_ns = self._start_ns + self._phase_ns - self.period_ns
        behind_ns = max(0, now_ns - first_ns)
        return first_ns + -(-behind_ns // self.period_ns) * self.period_ns
