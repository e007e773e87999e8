package wattwire

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

const probe, unknownNs, never = 1<<48 - 1, math.MinInt64, math.MaxInt64

// Kit is one node. Any goroutine may use it.
type Kit struct {
	Spec
	*Payload
	started, stopped context.Context // done at GO or STOP, at STOP
	start, stop      func()
	startNs          atomic.Int64 // never before GO
	pacer            sync.Mutex   // held by the worker that waits until the next call is due
	next, scheduled  int64
	mutex            sync.Mutex // held for what follows
	peer             uint16     // of a client
	samples          *Recorder
	counts           map[string]int64 // of DONE
	firstNs, lastNs  any              // begin of the first and end of the last call
	arrivalNs        int64            // of a server's last request
}

func newKit(s Spec) *Kit {
	nodes, peer := s["peers.nodes"].([]any), uint16(65535)
	if len(nodes) == 1 {
		peer = uint16(nodes[0].(float64))
	}
	if s.isClient() { // what arrives are its own messages, answered
		nodes = []any{s["node"]}
	}
	k := &Kit{Spec: s, scheduled: s.Integer("count"), peer: peer,
		counts:  map[string]int64{"sent": 0, "received": 0, "foreign": 0, "corrupt": 0, "probes": 0},
		samples: NewRecorder(s.Integer("record.capacity")),
		Payload: NewPayload(s.Integer("payload.seed"), s.Integer("payload.bytes"),
			s.String("payload.encoding"), s.String("payload.literal"), s.String("verify"), nodes)}
	if leftNs := s.Integer("duration_ns") - s.Integer("phase_ns"); s.isOpen() && leftNs > 0 {
		k.scheduled = (leftNs-1)/s.Integer("period_ns") + 1
	}
	k.startNs.Store(never)
	k.stopped, k.stop = context.WithCancel(context.Background())
	k.started, k.start = context.WithCancel(k.stopped)
	return k
}

// Ready prints READY (C-07): fields are all of its fields but startup_ns.
func (k *Kit) Ready(fields map[string]any) {
	fields["startup_ns"] = NowNs() - processStartNs
	Print("READY", fields)
}

// Call makes a call. context.DeadlineExceeded and os.ErrDeadlineExceeded say that no reply came in
// time, other errors that it was not sent. Workers, counted from 0, call at once, each with its own
// message, which is stamped anew for its next call.
type Call func(worker int, message []byte, timeout time.Duration) (reply []byte, err error)

// Probe calls until a reply comes, and gives the nanoseconds that it took.
func (k *Kit) Probe(call Call) int64 {
	beginNs, limitMs, message := NowNs(), k.Integer("ready_timeout_ms"), k.message()
	for ; ; time.Sleep(2 * time.Millisecond) {
		k.counts["probes"]++
		k.Stamp(message, k.seq(probe), NowNs())
		_, err := call(0, message, 250*time.Millisecond)
		if err == nil {
			return NowNs() - beginNs
		}
		Must(NowNs()-processStartNs < limitMs*1_000_000, 4, nil, "no reply in %d ms: %v", limitMs, err)
	}
}

func (k *Kit) message() []byte          { return append([]byte(nil), k.Template...) }
func (k *Kit) seq(counter int64) uint64 { return uint64(k.Integer("node")<<48 | counter) }

// Calls makes the calls of the schedule, prints SENT and waits for STOP.
func (k *Kit) Calls(call Call) {
	<-k.started.Done()
	var workers sync.WaitGroup
	for worker := 0; worker < k.Workers(); worker++ {
		workers.Add(1)
		go func(worker int) {
			defer Guard()
			for message := k.message(); k.call(worker, message, call); {
			}
			workers.Done()
		}(worker)
	}
	workers.Wait()
	Print("SENT", map[string]any{"begin_ns": k.firstNs, "end_ns": k.lastNs,
		"sent": k.counts["sent"], "scheduled": k.scheduled, "skipped": 0})
	<-k.stopped.Done()
}

// call makes the next call when it is due; false: there is none any more.
func (k *Kit) call(worker int, message []byte, call Call) bool {
	seq, dueNs, goes := k.take()
	if !goes {
		return false
	}
	beginNs, timeout, flags := NowNs(), time.Duration(k.Integer("timeout_ns")), byte(0)
	k.Stamp(message, seq, beginNs)
	reply, err := call(worker, message, timeout)
	nowNs := NowNs()
	endNs := nowNs
	late := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
	switch {
	case late, err == nil && endNs-beginNs > int64(timeout):
		endNs, flags = unknownNs, 4
	case err != nil:
		endNs, flags = unknownNs, 2
	case !k.isReply(reply, message, seq):
		flags = 8
	}
	if !k.isOpen() {
		dueNs = beginNs
	}
	k.record(Sample{seq, dueNs, beginNs, endNs, uint32(len(message)), k.peer, 1, flags})
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.count("sent", flags != 2)
	k.count("received", endNs != unknownNs)
	k.count("corrupt", flags == 8)
	if k.lastNs = nowNs; k.firstNs == nil || beginNs < k.firstNs.(int64) {
		k.firstNs = beginNs
	}
	return true
}

// take waits for the next slot: one worker at a time, in the order of due times.
func (k *Kit) take() (seq uint64, dueNs int64, goes bool) {
	k.pacer.Lock()
	defer k.pacer.Unlock()
	seq, dueNs = k.seq(k.next), k.startNs.Load()
	lastNs := dueNs + k.Integer("duration_ns") + k.Integer("overrun_ns")
	if k.isOpen() {
		dueNs += k.Integer("phase_ns") + k.next*k.Integer("period_ns")
	}
	goes = k.next < k.scheduled && k.sleepUntil(dueNs) && (NowNs() <= lastNs || !k.isOpen())
	k.next++
	return seq, dueNs, goes
}

// sleepUntil sleeps, and spins for the last spin_ns; false: STOP came. The runtime's own timers
// are up to a millisecond late on Linux.
func (k *Kit) sleepUntil(dueNs int64) bool {
	const monotonic, absolute, napNs = 1, 1, 500_000_000
	for nowNs := NowNs(); nowNs < dueNs && k.stopped.Err() == nil; nowNs = NowNs() {
		wakeNs := dueNs - k.Integer("spin_ns")
		if wakeNs > nowNs+napNs {
			wakeNs = nowNs + napNs
		}
		if nap := syscall.NsecToTimespec(wakeNs); nowNs < wakeNs {
			syscall.Syscall6(syscall.SYS_CLOCK_NANOSLEEP, monotonic, absolute,
				uintptr(unsafe.Pointer(&nap)), 0, 0, 0)
		}
	}
	return k.stopped.Err() == nil
}

// Serve takes a request that is in hand and, unless it must not be answered, hands the reply over.
// A record that the cell's decoder refused is nil.
func (k *Kit) Serve(request []byte, hand func(reply []byte) error) {
	beginNs, a, flags := NowNs(), k.Check(request), byte(0)
	isProbe := a.Known && !a.Foreign && a.Seq&probe == probe
	if k.literal {
		isProbe, a.Seq = beginNs < k.startNs.Load(), 65535<<48|uint64(beginNs)&probe
	}
	k.mutex.Lock()
	k.count("foreign", a.Foreign)
	k.count("probes", isProbe)
	if !a.Foreign && !isProbe {
		k.count("received", a.Known)
		k.count("corrupt", a.Corrupt)
		k.arrivalNs = beginNs
	}
	k.mutex.Unlock()
	if a.Corrupt {
		flags = 8
	}
	if a.Foreign || request == nil || hand(k.reply(request)) != nil || isProbe || !a.Known {
		return
	}
	size, peer := uint32(len(request)), uint16(a.Seq>>48)
	k.record(Sample{a.Seq, unknownNs, beginNs, NowNs(), size, peer, 1, flags})
}

func (k *Kit) count(name string, holds bool) {
	if holds {
		k.counts[name]++
	}
}

// record keeps a sample; whose due time is unknown is judged by its end (C-13).
func (k *Kit) record(s Sample) {
	whenNs := s.IntendedNs
	if whenNs == unknownNs {
		whenNs = s.EndNs
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if whenNs-k.Integer("warmup_ns") < k.startNs.Load() {
		s.Flags |= 1
	}
	k.samples.Add(s)
}

// reply answers a request (C-23).
func (k *Kit) reply(request []byte) []byte {
	switch end := len(request) - 8; {
	case k.Spec["reply"] == "echo":
		return request
	case k.Spec["reply"] == "literal":
		return []byte(k.String("reply.literal"))
	case k.Spec["payload.encoding"] == "record":
		return append(append(append([]byte(nil), request[:16]...), make([]byte, 72)...), request[end:]...)
	case end < 8*k.unit-8:
		return request
	}
	return request[:8*k.unit]
}

func (k *Kit) isReply(reply, message []byte, seq uint64) bool {
	if k.literal || k.Spec["reply"] != "echo" {
		return bytes.Equal(reply, k.reply(message))
	}
	return k.Check(reply) == Arrival{Known: true, Seq: seq}
}

// Drain waits for STOP, and then until it is quiet (C-15).
func (k *Kit) Drain() {
	<-k.stopped.Done()
	lingerNs, leftNs := NowNs()+k.Integer("linger_ms")*1_000_000, int64(1)
	for k.arrivalNs = NowNs(); leftNs > 0; time.Sleep(time.Duration(leftNs)) {
		k.mutex.Lock()
		quietNs := k.arrivalNs + k.Integer("quiet_ms")*1_000_000
		k.mutex.Unlock()
		if quietNs > lingerNs {
			quietNs = lingerNs
		}
		leftNs = quietNs - NowNs()
	}
}

// finish writes the samples and ends the process; it keeps the mutex: nothing more is recorded.
func (k *Kit) finish(out string) {
	k.mutex.Lock()
	role := map[any]byte{"server": 2, "client": 3, "ping": 6, "pong": 7}[k.Spec["role"]]
	node, seed := uint16(k.Integer("node")), k.Integer("payload.seed")
	err := k.samples.Write(filepath.Join(out, "samples.bin"), role, node, seed)
	Must(err == nil, 4, nil, "%v", err)
	k.counts["recorded"], k.counts["overflow"] = int64(len(k.samples.Samples)), k.samples.Overflow
	Print("DONE", k.counts)
	os.Exit(0)
}
