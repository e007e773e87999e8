//! The schedule of a sender and the state of its open messages (C-10 to C-14).

use std::collections::VecDeque;

use crate::constants::UNKNOWN_NS;
use crate::spec::Spec;

/// A message of the schedule. Its sequence identifies the message permanently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    pub seq: u64,
    /// UNKNOWN_NS in a closed loop until the message begins.
    pub intended_ns: i64,
}

/// A message that has begun and has not ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Open {
    pub slot: Slot,
    pub begin_ns: i64,
    pub accepted: bool,
    resolved: bool,
}

pub(crate) struct Schedule {
    node: u64,
    period_ns: i64,
    phase_ns: i64,
    closed: bool,
    native: bool,
    bound_ns: i64,
    warmup_ns: i64,
    open_max: usize,
    scheduled: i64,
    /// Maximum number of messages, including calls beyond the schedule (C-11).
    count_max: i64,
    /// `i64::MAX` before GO, like the next two times.
    start_ns: i64,
    warm_until_ns: i64,
    last_ns: i64,
    next: i64,
    skipped: i64,
    ended: bool,
    open_count: usize,
    // Ordered by sequence, and therefore also by timeout.
    open: VecDeque<Open>,
}

impl Schedule {
    pub fn new(spec: &Spec) -> Self {
        let closed = spec.string("loop") == "closed";
        let (period_ns, phase_ns) = (spec.integer("period_ns"), spec.integer("phase_ns"));
        let left_ns = spec.integer("duration_ns") - phase_ns;
        let open_scheduled = if left_ns <= 0 { 0 } else { (left_ns - 1) / period_ns.max(1) + 1 };
        let open_max = if closed { 1 } else { spec.integer("outstanding_max") as usize };
        let scheduled = if closed { spec.integer("count") } else { open_scheduled };
        Schedule {
            node: spec.integer("node") as u64,
            period_ns,
            phase_ns,
            closed,
            native: !closed && spec.string("pacing") == "native",
            bound_ns: spec.integer("duration_ns").saturating_add(spec.integer("overrun_ns")),
            warmup_ns: spec.integer("warmup_ns"),
            open_max,
            scheduled,
            count_max: scheduled.saturating_add(spec.integer("count_beyond")),
            start_ns: i64::MAX,
            warm_until_ns: i64::MAX,
            last_ns: i64::MAX,
            next: 0,
            skipped: 0,
            ended: false,
            open_count: 0,
            open: VecDeque::with_capacity(open_max.min(1 << 16)),
        }
    }

    pub fn start(&mut self, start_ns: i64) {
        self.start_ns = start_ns;
        self.warm_until_ns = start_ns.saturating_add(self.warmup_ns);
        self.last_ns = if self.closed { i64::MAX } else { start_ns.saturating_add(self.bound_ns) };
    }
    #[inline]
    pub fn start_ns(&self) -> i64 {
        self.start_ns
    }
    #[inline]
    pub fn started(&self) -> bool {
        self.start_ns != i64::MAX
    }
    #[inline]
    pub fn is_warm_up(&self, at_ns: i64) -> bool {
        at_ns < self.warm_until_ns
    }
    /// Returns the due time of the next slot.
    #[inline]
    pub fn due_ns(&self) -> i64 {
        if self.closed {
            return self.start_ns;
        }
        self.start_ns.saturating_add(self.phase_ns).saturating_add(self.next * self.period_ns)
    }
    pub fn scheduled(&self) -> i64 {
        self.scheduled
    }
    /// Returns whether exactly the scheduled messages were taken.
    #[inline]
    pub fn is_counted(&self) -> bool {
        self.next == self.scheduled
    }
    /// Returns whether more messages than scheduled were taken.
    pub fn is_beyond(&self) -> bool {
        self.next > self.scheduled
    }
    pub fn skipped(&self) -> i64 {
        self.skipped
    }
    pub fn none_open(&self) -> bool {
        self.open_count == 0
    }
    #[inline]
    pub fn is_full(&self) -> bool {
        self.open_count >= self.open_max
    }
    pub fn is_native(&self) -> bool {
        self.native
    }
    pub fn period_ns(&self) -> i64 {
        self.period_ns
    }
    pub fn ended(&self) -> bool {
        self.ended
    }

    #[inline]
    pub fn has_ended(&mut self, at_ns: i64, stopped: bool) -> bool {
        self.ended |= self.next >= self.count_max || stopped || at_ns > self.last_ns;
        self.ended
    }

    /// Skips at most `count` slots.
    pub fn skip(&mut self, count: i64) {
        let ahead = count.min(self.scheduled - self.next);
        self.skipped += ahead;
        self.next += ahead;
    }

    /// Takes the next slot.
    #[inline]
    pub fn take(&mut self) -> Slot {
        let intended_ns = if self.closed { UNKNOWN_NS } else { self.due_ns() };
        let slot = Slot { seq: self.node << 48 | self.next as u64, intended_ns };
        self.next += 1;
        slot
    }

    /// Begins a slot's message.
    #[inline]
    pub fn begin(&mut self, mut slot: Slot, begin_ns: i64) {
        if self.closed {
            slot.intended_ns = begin_ns;
        }
        self.open_count += 1;
        self.open.push_back(Open { slot, begin_ns, accepted: false, resolved: false });
    }

    /// Returns the message of a slot if it is not resolved.
    #[inline]
    pub fn find(&mut self, slot: Slot) -> Option<&mut Open> {
        let is_oldest = self.open.front()?.slot.seq == slot.seq;
        let index = match is_oldest {
            true => 0,
            false => self.open.binary_search_by_key(&slot.seq, |open| open.slot.seq).ok()?,
        };
        Some(&mut self.open[index]).filter(|open| !open.resolved)
    }

    /// Removes an unresolved message from the open messages.
    #[inline]
    pub fn resolve(&mut self, slot: Slot) -> Option<Open> {
        let open = self.find(slot)?;
        open.resolved = true;
        let resolved = *open;
        self.open_count -= 1;
        while self.open.front().is_some_and(|open| open.resolved) {
            self.open.pop_front();
        }
        Some(resolved)
    }

    #[inline]
    pub fn oldest(&self) -> Option<&Open> {
        self.open.front()
    }
}
