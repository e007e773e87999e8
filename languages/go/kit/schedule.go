package wattwire

import "sync"

const (
	never = 1<<63 - 1
	msNs  = 1_000_000
	// A wait for a due time looks for STOP after each of these naps.
	napNs = 500 * msNs
)

// schedule says when each call is due, and gives each to one worker (C-10, C-11).
type schedule struct {
	phaseNs, periodNs, spinNs int64
	graceNs                   int64 // after the start; no call begins later
	scheduled                 int64
	callsMax                  int64 // scheduled, and those that may follow until STOP

	turn sync.Mutex // one worker waits for the next due time, the others wait for that one
	next int64
}

func newSchedule(spec *Spec) *schedule {
	s := &schedule{
		phaseNs:   spec.PhaseNs,
		periodNs:  spec.PeriodNs,
		spinNs:    spec.SpinNs,
		graceNs:   never,
		scheduled: spec.Count,
	}
	if spec.Loop == "open" {
		spanNs := spec.DurationNs - spec.PhaseNs
		s.scheduled = max(0, (spanNs+spec.PeriodNs-1)/spec.PeriodNs)
		s.graceNs = spec.DurationNs + spec.OverrunNs
	}
	s.callsMax = s.scheduled + spec.CountBeyond
	return s
}

// await returns the next call's counter and due time once it is due; false: none is to follow.
func (s *schedule) await(w *window) (counter, dueNs int64, isDue bool) {
	s.turn.Lock()
	defer s.turn.Unlock()
	if s.next >= s.callsMax {
		return 0, 0, false
	}
	startNs := w.startNs.Load()
	dueNs = startNs + s.phaseNs + s.next*s.periodNs
	nowNs := NowNs()
	for nowNs < dueNs && !w.isOver.Load() {
		if wakeNs := min(dueNs-s.spinNs, nowNs+napNs); wakeNs > nowNs {
			sleep(wakeNs)
		}
		nowNs = NowNs()
	}
	if w.isOver.Load() || nowNs-startNs > s.graceNs {
		return 0, 0, false
	}
	counter = s.next
	s.next++
	return counter, dueNs, true
}
