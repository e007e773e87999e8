package wattwire

import (
	"fmt"
	"testing"
	"time"
)

const messages = 1000

// shapes returns one spec for each kind of message that the kit handles differently.
func shapes() map[string]*Spec {
	specs := map[string]*Spec{}
	for _, encoding := range []string{"bytes", "text", "record"} {
		for _, reply := range []string{"echo", "ack", "literal"} {
			for _, verify := range []string{"header", "full"} {
				specs[fmt.Sprint(encoding, " ", reply, " ", verify)] = &Spec{
					Loop:            "open",
					PeriodNs:        1,
					DurationNs:      10 * messages,
					OverrunNs:       3_600_000_000_000,
					TimeoutNs:       1_000_000_000,
					OutstandingMax:  1,
					PeersNodes:      []int64{7},
					Node:            7,
					PayloadBytes:    160,
					PayloadEncoding: encoding,
					Reply:           reply,
					ReplyLiteral:    "a reply",
					Verify:          verify,
					RecordCapacity:  10 * messages,
				}
			}
		}
	}
	literal := *specs["bytes echo full"]
	literal.PayloadLiteral = "a payload"
	specs["literal"] = &literal
	return specs
}

func begun(spec Spec, role string) *Kit {
	spec.Role = role
	kit := newKit(&spec)
	kit.window.begin(NowNs())
	return kit
}

func TestACallAllocatesNothing(t *testing.T) {
	for name, spec := range shapes() {
		t.Run(name, func(t *testing.T) {
			kit := begun(*spec, "client")
			message := kit.Payload.New()
			buffer := make([]byte, len(message))
			call := func(message []byte, _ time.Duration) ([]byte, error) {
				request := buffer[:copy(buffer, message)]
				return kit.Payload.Reply(request), nil
			}
			perCall := testing.AllocsPerRun(messages, func() { kit.callOnce(call, message) })
			if perCall != 0 {
				t.Errorf("found %v allocations in a call; allowed: none", perCall)
			}
			if kit.counts.received < messages || kit.counts.corrupt > 0 {
				t.Errorf("found %+v; allowed: %d received or more", kit.counts, messages)
			}
		})
	}
}

func TestARequestAllocatesNothing(t *testing.T) {
	for name, spec := range shapes() {
		t.Run(name, func(t *testing.T) {
			kit := begun(*spec, "server")
			message := kit.Payload.New()
			buffer := make([]byte, len(message))
			var counter uint64
			perRequest := testing.AllocsPerRun(messages, func() {
				kit.Payload.Stamp(message, 7<<48|counter, NowNs())
				counter++
				request := buffer[:copy(buffer, message)]
				kit.Serve(request, func([]byte) error { return nil })
			})
			if perRequest != 0 {
				t.Errorf("found %v allocations in a request; allowed: none", perRequest)
			}
			if kit.counts.received < messages || kit.counts.corrupt > 0 {
				t.Errorf("found %+v; allowed: %d received or more", kit.counts, messages)
			}
		})
	}
}
