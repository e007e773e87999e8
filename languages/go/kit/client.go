package wattwire

import (
	"os"
	"sync"
	"time"
)

const probeTimeout = 250 * time.Millisecond

// Call makes one call. It returns a timeout (os.IsTimeout) if no reply arrived, and any other error
// if the call failed (C-36).
type Call func(message []byte, timeout time.Duration) (reply []byte, err error)

// Probe makes calls until a reply arrives, and returns the elapsed nanoseconds.
func (k *Kit) Probe(call Call) int64 {
	message := k.Payload.New()
	limitNs := beganNs + k.Spec.ReadyTimeoutMs*msNs
	seq := uint64(k.Spec.Node)<<48 | probeCounter
	beginNs := NowNs()
	poll(func() bool {
		k.counts.probes++
		k.Payload.Stamp(message, seq, NowNs())
		_, err := call(message, probeTimeout)
		if err != nil && NowNs() > limitNs {
			Fail(MiddlewareFailed, "", "no reply within ready_timeout_ms: %v", err)
		}
		return err == nil
	})
	return NowNs() - beginNs
}

// Calls makes the calls of the schedule, prints SENT and returns at STOP.
func (k *Kit) Calls(call Call) {
	<-k.window.begun
	var workers sync.WaitGroup
	for range k.Workers {
		workers.Go(func() {
			defer Guard()
			message := k.Payload.New()
			for k.callOnce(call, message) {
			}
		})
	}
	workers.Wait()
	k.printSent()
	<-k.window.over
}

// callOnce makes the next call of the schedule, or returns false if there is none.
func (k *Kit) callOnce(call Call, message []byte) bool {
	counter, dueNs, isDue := k.schedule.await(k.window)
	if !isDue {
		return false
	}
	if counter == k.schedule.scheduled {
		printLine("COUNTED", struct{}{})
	}
	sample := Sample{
		Seq:        uint64(k.Spec.Node<<48 | counter),
		IntendedNs: dueNs,
		BeginNs:    NowNs(),
		Bytes:      uint32(len(message)),
		Peer:       uint16(k.Spec.PeersNodes[0]),
	}
	if k.Spec.Loop == "closed" {
		sample.IntendedNs = sample.BeginNs
	}
	k.Payload.Stamp(message, sample.Seq, sample.BeginNs)
	reply, err := call(message, time.Duration(k.Spec.TimeoutNs))
	sample.EndNs = NowNs()

	switch {
	case os.IsTimeout(err), err == nil && sample.EndNs-sample.BeginNs > k.Spec.TimeoutNs:
		sample.Flags = flagTimeout
	case err != nil:
		sample.Flags = flagFailed
	case !k.Payload.isReply(reply, message, sample.Seq):
		sample.Flags = flagCorrupt
	}
	k.recordCall(sample)
	return true
}

func (k *Kit) recordCall(sample Sample) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.counts.sent++
	k.firstNs = min(k.firstNs, sample.BeginNs)
	if sample.Flags&(flagTimeout|flagFailed) != 0 {
		k.lastNs = max(k.lastNs, sample.BeginNs)
		sample.EndNs = unknownNs
	} else {
		k.lastNs = max(k.lastNs, sample.EndNs)
		k.counts.received++
	}
	if sample.Flags&flagCorrupt != 0 {
		k.counts.corrupt++
	}
	k.recordSample(sample, sample.IntendedNs)
}

func (k *Kit) printSent() {
	fields := struct {
		BeginNs   *int64 `json:"begin_ns"`
		EndNs     *int64 `json:"end_ns"`
		Sent      int64  `json:"sent"`
		Scheduled int64  `json:"scheduled"`
		Skipped   int64  `json:"skipped"`
	}{Sent: k.counts.sent, Scheduled: k.schedule.scheduled}
	if k.counts.sent > 0 {
		fields.BeginNs, fields.EndNs = &k.firstNs, &k.lastNs
	}
	printLine("SENT", fields)
}
