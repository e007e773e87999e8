//! Schedules with the ticks of a middleware's timer (C-10).

use crate::clock::now_ns;
use crate::kit::Kit;
use crate::schedule::Schedule;

/// Skips the slots before the slot nearest to `at_ns`. Returns false if that slot was already
/// taken.
pub(crate) fn skip_to_nearest(schedule: &mut Schedule, at_ns: i64) -> bool {
    let late_ns = at_ns - schedule.due_ns() + schedule.period_ns() / 2;
    if late_ns >= 0 {
        schedule.skip(late_ns / schedule.period_ns());
    }
    late_ns >= 0
}

impl Kit {
    /// Blocks until one period before the next slot, when the cell must create its periodic timer.
    pub fn wait_timer_birth(&self) {
        let period_ns = self.period_ns();
        let Some(start_ns) = self.wait_go() else { return };
        let first_ns = start_ns.saturating_add(self.times.phase_ns) - period_ns;
        let behind_ns = (now_ns() - first_ns).max(0);
        self.sleep_until(first_ns + (behind_ns + period_ns - 1) / period_ns * period_ns);
    }
}
