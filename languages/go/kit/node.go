// Package wattwire is the node contract for Go cells; languages/go/README.md shows its use.
package wattwire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

const probe, unknownNs, never, msNs = 1<<48 - 1, -1 << 63, 1<<63 - 1, 1_000_000

// flags of samples by what was found of an arrival, or became of a call.
var flags = map[string]byte{"corrupt": 8, "wrong": 8, "late": 4, "failed": 2}

// keys of a spec by the type of their values, as encoding/json has it.
var keys = map[string]string{
	"float64": `contract node index peers.count period_ns phase_ns duration_ns count warmup_ns
		overrun_ns timeout_ns outstanding_max quiet_ms linger_ms ready_timeout_ms spin_ns
		payload.bytes payload.seed action.feedback record.capacity`,
	"string": `run cell pattern role loop pacing payload.encoding payload.literal reply
		reply.literal verify tls.authority tls.certificate tls.key`,
	"[]interface {}": "peers.nodes peers.endpoints",
}

var lines = os.NewFile(3, "lines") // C-05
var BeganNs = NowNs()              // of the process: READY's startup_ns counts from here

// NowNs gives the nanoseconds of CLOCK_MONOTONIC, without a system call.
//
//go:linkname NowNs runtime.nanotime
func NowNs() int64

// Print prints a line of the dialogue.
func Print(keyword string, fields any) {
	text, _ := json.Marshal(fields)
	fmt.Fprintf(lines, "%s %s\n", keyword, text)
}

// Must ends the node unless something holds: 2 with the key of the spec that is wrong, 3 where the
// cell cannot do what is asked, 4 where the middleware failed.
func Must(holds bool, code int, key any, format string, found ...any) {
	if !holds {
		Print("ERROR", map[string]any{"code": code, "key": key, "reason": fmt.Sprintf(format, found...)})
		os.Exit(code)
	}
}

// Guard, deferred in a goroutine, makes its panics failures of the middleware.
func Guard() {
	if problem := recover(); problem != nil {
		debug.PrintStack()
		Must(false, 4, nil, "%v", problem)
	}
}

// Spec is what the harness asks for; its getters panic on a key that is not there.
type Spec map[string]any

func (s Spec) String(key string) string { return s[key].(string) }
func (s Spec) Integer(key string) int64 { return int64(s[key].(float64)) }

// ReadSpec reads a spec, of which the harness has checked the values but not the types (C-02).
func ReadSpec(path, settings string) (spec Spec) {
	text, _ := os.ReadFile(path)
	err := json.Unmarshal(text, &spec)
	Must(err == nil && spec != nil, 2, "--spec", "%s: %v; allowed: a JSON object", path, err)
	for kind, names := range keys {
		for _, key := range strings.Fields(names) {
			found := fmt.Sprintf("%T", spec[key])
			Must(found == kind, 2, key, "%s: found %s; allowed: %s", key, found, kind)
		}
	}
	for key := range spec {
		name, is := strings.CutPrefix(key, "settings.")
		Must(!is || has(settings, name), 2, key, "%s; allowed: %s", key, settings)
	}
	Must(spec["contract"] == 2.0, 2, "contract", "found %v; allowed: 2", spec["contract"])
	return spec
}

func has(words, word string) bool { return slices.Contains(strings.Fields(words), word) }

// Kit is one node. Any goroutine may use it.
type Kit struct {
	Spec
	*Payload
	Workers, next, scheduled, graceNs int64           // Workers: calls at once (C-33)
	started, stopped                  context.Context // done at GO or STOP, and at STOP
	start, stop                       func()
	startNs, arrivalNs                atomic.Int64     // never before GO; of the last request
	pacer, mutex                      sync.Mutex       // of whom waits to call, of what follows
	counts                            map[string]int64 // of arrivals and calls, by what was found
	samples                           []Sample
	firstNs, lastNs                   any // begin of the first call and end of the last
}

// Run runs a node in one of these roles and ends the process. Settings are words that the spec may
// hold, capabilities those that the cell declares.
func Run(roles map[string]func(*Kit), settings, capabilities string) {
	defer Guard()
	syscall.CloseOnExec(3)
	Must(len(os.Args) == 5 && os.Args[1] == "--spec" && os.Args[3] == "--out", 2, "command line",
		"found %q; allowed: --spec FILE --out DIR", os.Args[1:])
	k := newKit(ReadSpec(os.Args[2], settings))
	role := k.String("role")
	for name, asked := range map[string]bool{ // C-03
		"encoding." + k.String("payload.encoding"): true, "loop." + k.String("loop"): true,
		"reply." + k.String("reply"): true, "pacing." + k.String("pacing"): k.isClient(),
		"literal": k.literal, "tls": k.String("tls.authority") != "", "async_client": k.Workers > 1,
	} {
		Must(!asked || has(capabilities, name), 3, nil, "%s: there are %s", name, capabilities)
	}
	Must(k.literal || len(k.Template) >= 16*k.unit, 3, nil, "payload.bytes: at least %d", 16*k.unit)
	Must(roles[role] != nil, 3, nil, "role %s", role)
	go k.listen()
	roles[role](k)
	k.mutex.Lock() // for ever: nothing is recorded any more
	code := map[string]byte{"server": 2, "client": 3, "ping": 6, "pong": 7}[role]
	err := WriteSamples(os.Args[4]+"/samples.bin", code, uint16(k.Integer("node")),
		k.Integer("payload.seed"), k.counts["overflow"], k.samples)
	Must(err == nil, 4, nil, "%v", err)
	c := k.counts
	Print("DONE", map[string]any{"sent": k.sent(), "foreign": c["foreign"], "probes": c["probe"],
		"received": c["answered"] + c["wrong"] + c["ok"] + c["corrupt"],
		"corrupt":  c["wrong"] + c["corrupt"] + c["unreadable"],
		"recorded": len(k.samples), "overflow": c["overflow"]})
	os.Exit(0)
}

func newKit(s Spec) *Kit {
	k := &Kit{Spec: s, Workers: 1, scheduled: s.Integer("count"), graceNs: never,
		samples: make([]Sample, s.Integer("record.capacity")), counts: map[string]int64{}}
	nodes := s["peers.nodes"].([]any)
	if k.isClient() { // what arrives are its own messages, answered
		nodes = []any{s["node"]}
	}
	if k.Payload = NewPayload(s, nodes); s["loop"] == "open" {
		durationNs, periodNs := s.Integer("duration_ns"), s.Integer("period_ns")
		k.graceNs, k.Workers = durationNs+s.Integer("overrun_ns"), s.Integer("outstanding_max")
		k.scheduled = max(0, (durationNs-s.Integer("phase_ns")+periodNs-1)/periodNs)
	}
	for i := range k.samples { // so that no page is fetched within the window
		k.samples[i].Kind = 1
	}
	k.samples = k.samples[:0]
	k.startNs.Store(never)
	k.stopped, k.stop = context.WithCancel(context.Background())
	k.started, k.start = context.WithCancel(k.stopped)
	return k
}

func (k *Kit) isClient() bool { return k.Spec["role"] == "client" || k.Spec["role"] == "ping" }
func (k *Kit) sent() int64    { return k.counts["answered"] + k.counts["wrong"] + k.counts["late"] }

// listen obeys standard input until it ends, and then ends the process (C-08, C-09).
func (k *Kit) listen() {
	for word, startNs := "", int64(0); ; {
		switch count, _ := fmt.Scanln(&word, &startNs); {
		case count == 0:
			os.Exit(5)
		case word == "STOP":
			k.stop()
		default:
			Must(word == "GO" && startNs > NowNs(), 2, "GO", "%s %d: at %d", word, startNs, NowNs())
			k.startNs.Store(startNs)
			k.start()
		}
	}
}

// Call makes a call. context.DeadlineExceeded and os.ErrDeadlineExceeded say that no reply came in
// time, other errors that it was not sent. Of Workers at once, each has a message of its own.
type Call func(message []byte, timeout time.Duration) (reply []byte, err error)

// Probe calls until a reply comes, and gives the nanoseconds that it took.
func (k *Kit) Probe(call Call) int64 {
	message, limitNs := slices.Clone(k.Template), k.Integer("ready_timeout_ms")*msNs
	for beginNs := NowNs(); ; time.Sleep(2 * time.Millisecond) {
		k.counts["probe"]++
		k.Stamp(message, uint64(k.Integer("node"))<<48|probe, NowNs())
		_, err := call(message, 250*time.Millisecond)
		if err == nil {
			return NowNs() - beginNs
		}
		Must(NowNs()-BeganNs < limitNs, 4, nil, "no reply within ready_timeout_ms: %v", err)
	}
}

// Calls makes the calls of the schedule, prints SENT and waits for STOP.
func (k *Kit) Calls(call Call) {
	<-k.started.Done()
	var workers sync.WaitGroup
	for range k.Workers {
		workers.Go(func() {
			defer Guard()
			for message := slices.Clone(k.Template); k.call(call, message); {
			}
		})
	}
	workers.Wait()
	Print("SENT", map[string]any{"begin_ns": k.firstNs, "end_ns": k.lastNs, "sent": k.sent(),
		"scheduled": k.scheduled, "skipped": 0})
	<-k.stopped.Done()
}

// call makes the next call when it is due; false: there is none any more.
func (k *Kit) call(call Call, message []byte) bool {
	k.pacer.Lock() // one waits, the others for it
	counter, startNs := k.next, k.startNs.Load()
	s := Sample{Seq: uint64(k.Integer("node")<<48 | counter), Bytes: uint32(len(message)),
		IntendedNs: startNs + k.Integer("phase_ns") + counter*k.Integer("period_ns"),
		Peer:       uint16(k.Spec["peers.nodes"].([]any)[0].(float64))}
	goes := counter < k.scheduled && k.sleepUntil(s.IntendedNs) && NowNs()-startNs <= k.graceNs
	k.next++
	k.pacer.Unlock()
	if !goes {
		return false
	}
	if s.BeginNs = NowNs(); k.Spec["loop"] == "closed" {
		s.IntendedNs = s.BeginNs
	}
	k.Stamp(message, s.Seq, s.BeginNs)
	reply, err := call(message, time.Duration(k.Integer("timeout_ns")))
	s.EndNs = NowNs()
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.lastNs = s.EndNs; counter == 0 {
		k.firstNs = s.BeginNs
	}
	verdict, late := "answered", err == nil && s.EndNs-s.BeginNs > k.Integer("timeout_ns")
	switch {
	case late, errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		verdict, s.EndNs = "late", unknownNs
	case err != nil:
		verdict, s.EndNs = "failed", unknownNs
	case !k.isReply(reply, message, s.Seq):
		verdict = "wrong"
	}
	k.counts[verdict]++
	k.record(s, verdict, s.IntendedNs)
	return true
}

// sleepUntil sleeps, and spins for the last spin_ns; false: STOP came. The runtime's own timers
// are up to a millisecond late on Linux.
func (k *Kit) sleepUntil(dueNs int64) bool {
	const monotonic, absolute = 1, 1
	for nowNs := NowNs(); nowNs < dueNs && k.stopped.Err() == nil; nowNs = NowNs() {
		wake := syscall.NsecToTimespec(min(dueNs-k.Integer("spin_ns"), nowNs+500*msNs))
		if wake.Nano() > nowNs {
			syscall.Syscall6(syscall.SYS_CLOCK_NANOSLEEP, monotonic, absolute,
				uintptr(unsafe.Pointer(&wake)), 0, 0, 0)
		}
	}
	return k.stopped.Err() == nil
}

// record keeps a sample; whenNs tells whether it is of the warm-up. The caller holds the mutex.
func (k *Kit) record(s Sample, verdict string, whenNs int64) {
	if s.Kind, s.Flags = 1, flags[verdict]; whenNs-k.Integer("warmup_ns") < k.startNs.Load() {
		s.Flags |= 1
	}
	if len(k.samples) < cap(k.samples) {
		k.samples = append(k.samples, s)
	} else {
		k.counts["overflow"]++
	}
}

// Serve takes a request that is in hand and hands its reply over; false: it must not be answered.
// A record that the cell's decoder refused is nil.
func (k *Kit) Serve(request []byte, hand func(reply []byte) error) bool {
	s := Sample{IntendedNs: unknownNs, BeginNs: NowNs(), Bytes: uint32(len(request))}
	verdict, seq := k.Check(request)
	if k.literal && s.BeginNs < k.startNs.Load() { // nothing but a probe comes so early
		verdict = "probe"
	}
	k.arrivalNs.Store(s.BeginNs)
	k.mutex.Lock()
	k.counts[verdict]++
	k.mutex.Unlock()
	if verdict == "foreign" || request == nil {
		return false
	}
	if hand(k.reply(request)) == nil && (verdict == "ok" || verdict == "corrupt") {
		s.Seq, s.Peer, s.EndNs = seq, uint16(seq>>48), NowNs()
		k.mutex.Lock()
		defer k.mutex.Unlock()
		k.record(s, verdict, s.EndNs)
	}
	return true
}

func (k *Kit) reply(request []byte) []byte {
	switch {
	case k.Spec["reply"] == "literal":
		return []byte(k.String("reply.literal"))
	case k.Spec["reply"] == "ack" && k.first == 16: // a record without name, pose and samples
		return slices.Concat(request[:16], make([]byte, 72), request[len(request)-8:])
	case k.Spec["reply"] == "ack":
		return request[:min(8*k.unit, len(request))]
	}
	return request
}

func (k *Kit) isReply(reply, message []byte, seq uint64) bool {
	if k.literal || k.Spec["reply"] != "echo" {
		return bytes.Equal(reply, k.reply(message))
	}
	verdict, found := k.Check(reply)
	return verdict == "ok" && found == seq
}

// Drain waits for STOP, and then until it is quiet (C-15).
func (k *Kit) Drain() {
	<-k.stopped.Done()
	lingerNs, quietNs := NowNs()+k.Integer("linger_ms")*msNs, k.Integer("quiet_ms")*msNs
	for k.arrivalNs.Store(NowNs()); NowNs() < min(lingerNs, k.arrivalNs.Load()+quietNs); {
		time.Sleep(2 * time.Millisecond)
	}
}
