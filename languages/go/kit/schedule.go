package wattwire

import "sync"

const (
	never = 1<<63 - 1
	msNs  = 1_000_000
	// The maximum time between two checks for STOP.
	napNs = 500 * msNs
)

// schedule computes the due times of calls, and assigns each call to one worker (C-10, C-11).
type schedule struct {
	phaseNs, periodNs, spinNs int64
	graceNs                   int64 // the latest begin of a call, counted from the start
	scheduled                 int64
	callsMax                  int64 // scheduled calls, and calls that may follow until STOP

	turn sync.Mutex // held by the worker that waits for the next due time
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

// await waits until the next call is due, and returns its counter and due time. It returns false if
// no call follows.
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
