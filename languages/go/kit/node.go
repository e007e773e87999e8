// Package wattwire is the node contract for Go cells; languages/go/README.md shows its use.
package wattwire

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
const probe, unknownNs, never, msNs = 1<<48 - 1, -1 << 63, 1<<63 - 1, 1_000_000

// keys of a spec by the type of their values, as encoding/json has it.
var keys = map[string]string{
	"float64": `contract node index peers.count period_ns phase_ns duration_ns count count_beyond
		warmup_ns overrun_ns timeout_ns outstanding_max quiet_ms linger_ms ready_timeout_ms
		spin_ns payload.bytes payload.seed action.feedback record.capacity`,
	"string": `run cell pattern role loop pacing payload.encoding payload.literal reply
		reply.literal verify tls.authority tls.certificate tls.key`,
	"[]interface {}": "peers.nodes peers.endpoints",
}
var flags = map[string]byte{"ok": 0, "right": 0, "corrupt": 8, "wrong": 8, "late": 4, "failed": 2}
var lines, BeganNs = os.NewFile(3, "lines"), NowNs() // C-05; of the process, for startup_ns

//go:linkname NowNs runtime.nanotime
func NowNs() int64 // CLOCK_MONOTONIC in ns, without a system call

func Print(keyword string, fields any) {
	text, _ := json.Marshal(fields)
	fmt.Fprintf(lines, "%s %s\n", keyword, text)
}

// Must ends the node with a code (2: key is wrong; 3: the cell cannot; 4) unless something holds.
func Must(holds bool, code int, key any, format string, found ...any) {
	if !holds {
		Print("ERROR", map[string]any{"code": code, "key": key, "reason": fmt.Sprintf(format, found...)})
		os.Exit(code)
	}
}

// Guard, deferred in a goroutine, makes its panics failures of the middleware.
func Guard() {
	problem := recover()
	Must(problem == nil, 4, nil, "%v", problem)
}

// Spec is what the harness asks for; its getters panic on a key that is not there.
type Spec map[string]any

func (s Spec) String(key string) string { return s[key].(string) }
func (s Spec) Integer(key string) int64 { return int64(s[key].(float64)) }

// ReadSpec reads a spec, of which the harness has checked the values but not the types (C-02).
func ReadSpec(path, settings string) (spec Spec) {
	text, _ := os.ReadFile(path)
	Must(json.Unmarshal(text, &spec) == nil && spec != nil, 2, "--spec", "%s: no JSON object", path)
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
	Workers, scheduled, graceNs int64           // Workers: calls at once (C-33)
	started, stopped            context.Context // done at GO or STOP, at STOP
	start, stop                 func()
	startNs, arrivalNs, next    atomic.Int64     // never before GO; of the last request; counter
	pacer, mutex                sync.Mutex       // of whom waits to call, of what follows
	firstNs, lastNs             int64            // begin of the first call, end of the last
	counts                      map[string]int64 // of arrivals and calls, by verdict
	samples                     []Sample
}

// Run runs a node and ends the process; settings and capabilities are words of the manifests.
func Run(roles map[string]func(*Kit), settings, capabilities string) {
	defer Guard()
	syscall.CloseOnExec(3)
	Must(len(os.Args) == 5 && os.Args[1] == "--spec" && os.Args[3] == "--out", 2, "command line",
		"found %q; allowed: --spec FILE --out DIR", os.Args[1:])
	s := ReadSpec(os.Args[2], settings)
	role, room, nodes := s.String("role"), s.Integer("record.capacity"), s["peers.nodes"].([]any)
	calls := role == "client" || role == "ping"
	if calls { // what arrives are its own messages, answered
		nodes = []any{s["node"]}
	}
	k := &Kit{Spec: s, Payload: NewPayload(s, nodes), Workers: 1, scheduled: s.Integer("count"),
		samples: slices.Repeat([]Sample{{Kind: 1}}, int(room))[:0:room], counts: map[string]int64{}}
	if k.graceNs, k.firstNs = never, never; s["loop"] == "open" {
		durationNs, periodNs := s.Integer("duration_ns"), s.Integer("period_ns")
		k.graceNs, k.Workers = durationNs+s.Integer("overrun_ns"), s.Integer("outstanding_max")
		k.scheduled = max(0, (durationNs-s.Integer("phase_ns")+periodNs-1)/periodNs)
	}
	k.startNs.Store(never)
	k.stopped, k.stop = context.WithCancel(context.Background())
	k.started, k.start = context.WithCancel(k.stopped)
	for name, asked := range map[string]bool{ // C-03
		"encoding." + s.String("payload.encoding"): true, "loop." + s.String("loop"): true,
		"reply." + s.String("reply"): true, "pacing." + s.String("pacing"): calls,
		"literal": k.head == 0, "tls": s["tls.authority"] != "", "async_client": calls && k.Workers > 1,
	} {
		Must(!asked || has(capabilities, name), 3, nil, "%s: there are %s", name, capabilities)
	}
	Must(roles[role] != nil && len(k.Template) >= k.head, 3, nil,
		"role %s with payload.bytes %v, at least %d", role, s["payload.bytes"], k.head)
	go k.listen()
	roles[role](k)
	k.mutex.Lock() // for ever: nothing is recorded any more
	c := k.counts
	code := map[string]byte{"server": 2, "client": 3, "ping": 6, "pong": 7}[role]
	WriteSamples(os.Args[4]+"/samples.bin", code, uint16(s.Integer("node")),
		s.Integer("payload.seed"), c["overflow"], k.samples)
	Print("DONE", map[string]any{"sent": c["right"] + c["wrong"] + c["late"] + c["failed"],
		"received": c["right"] + c["wrong"] + c["ok"] + c["corrupt"] + c["left"],
		"corrupt":  c["wrong"] + c["corrupt"] + c["unreadable"], "foreign": c["foreign"],
		"recorded": len(k.samples), "overflow": c["overflow"], "probes": c["probe"]})
	os.Exit(0)
}

// listen obeys standard input until it ends, and then ends the process (C-08, C-09).
func (k *Kit) listen() {
	for word, startNs := "", int64(never); ; {
		if count, _ := fmt.Scanln(&word, &startNs); count == 0 {
			os.Exit(5)
		}
		Must(word == "STOP" || word == "GO" && startNs > NowNs(), 2, "GO", "%s %d", word, startNs)
		k.startNs.Store(startNs)
		map[string]func(){"GO": k.start, "STOP": k.stop}[word]()
	}
}

// Call: an error says that no reply came in time (os.IsTimeout), or else that it failed (C-36).
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
	sent := k.counts["right"] + k.counts["wrong"] + k.counts["late"] + k.counts["failed"]
	span := map[bool][]any{true: {k.firstNs, k.lastNs}, false: {nil, nil}}[k.lastNs > 0]
	Print("SENT", map[string]any{"begin_ns": span[0], "end_ns": span[1],
		"sent": sent, "scheduled": k.scheduled, "skipped": 0})
	<-k.stopped.Done()
}

func (k *Kit) call(call Call, message []byte) bool {
	k.pacer.Lock() // one waits, the others for it
	counter, startNs := k.next.Add(1)-1, k.startNs.Load()
	s := Sample{Seq: uint64(k.Integer("node")<<48 | counter), Bytes: uint32(len(message)),
		IntendedNs: startNs + k.Integer("phase_ns") + counter*k.Integer("period_ns"),
		Peer:       uint16(k.Spec["peers.nodes"].([]any)[0].(float64))}
	most := k.scheduled + k.Integer("count_beyond")
	goes := counter < most && k.sleepUntil(s.IntendedNs) && NowNs()-startNs <= k.graceNs
	k.pacer.Unlock()
	if !goes {
		return false
	}
	if counter == k.scheduled {
		Print("COUNTED", map[string]any{})
	}
	if s.BeginNs = NowNs(); k.Spec["loop"] == "closed" {
		s.IntendedNs = s.BeginNs
	}
	k.Stamp(message, s.Seq, s.BeginNs)
	reply, err := call(message, time.Duration(k.Integer("timeout_ns")))
	s.EndNs = NowNs()
	verdict, isReply := "right", bytes.Equal(reply, k.reply(message))
	if k.head > 0 && k.Spec["reply"] == "echo" {
		found, seq := k.Check(reply)
		isReply = found == "ok" && seq == s.Seq
	}
	if os.IsTimeout(err) || err == nil && s.EndNs-s.BeginNs > k.Integer("timeout_ns") {
		verdict, s.EndNs = "late", unknownNs
	} else if err != nil {
		verdict, s.EndNs = "failed", unknownNs
	} else if !isReply {
		verdict = "wrong"
	}
	k.record(s, verdict, s.IntendedNs)
	return true
}

// sleepUntil is false where STOP came. The runtime's own timers are up to a millisecond late.
func (k *Kit) sleepUntil(dueNs int64) bool {
	for nowNs := NowNs(); nowNs < dueNs && k.stopped.Err() == nil; nowNs = NowNs() {
		wake := syscall.NsecToTimespec(min(dueNs-k.Integer("spin_ns"), nowNs+500*msNs))
		if wake.Nano() > nowNs { // 1, 1: CLOCK_MONOTONIC, TIMER_ABSTIME
			syscall.Syscall6(syscall.SYS_CLOCK_NANOSLEEP, 1, 1, uintptr(unsafe.Pointer(&wake)), 0, 0, 0)
		}
	}
	return k.stopped.Err() == nil
}

// record counts, and keeps a sample; whenNs tells whether it is of the warm-up.
func (k *Kit) record(s Sample, verdict string, whenNs int64) {
	flag, kept := flags[verdict]
	if s.Kind, s.Flags = 1, flag; whenNs-k.Integer("warmup_ns") < k.startNs.Load() {
		s.Flags |= 1
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.counts[verdict]++
	k.firstNs, k.lastNs = min(k.firstNs, s.BeginNs), max(k.lastNs, s.BeginNs, s.EndNs)
	if kept && len(k.samples) < cap(k.samples) {
		k.samples = append(k.samples, s)
	} else if kept {
		k.counts["overflow"]++
	}
}

// Serve hands the reply over; false: it must not be answered. What is no record (C-32) is nil.
func (k *Kit) Serve(request []byte, hand func(reply []byte) error) bool {
	s := Sample{IntendedNs: unknownNs, BeginNs: NowNs(), Bytes: uint32(len(request))}
	verdict, seq := k.Check(request)
	if k.head == 0 && s.BeginNs < k.startNs.Load() { // a literal: nothing but a probe comes so early
		verdict = "probe"
	}
	k.arrivalNs.Store(s.BeginNs)
	answered := verdict != "foreign" && request != nil && (verdict != "unreadable" || k.first < 16)
	if answered && hand(k.reply(request)) != nil {
		verdict = "left" // by the client
	}
	s.Seq, s.Peer, s.EndNs = seq, uint16(seq>>48), NowNs()
	k.record(s, verdict, s.EndNs)
	return answered
}

func (k *Kit) reply(request []byte) []byte {
	switch {
	case k.Spec["reply"] == "literal":
		return []byte(k.String("reply.literal"))
	case k.Spec["reply"] == "ack" && k.first == 16: // a record without name, pose and samples
		return slices.Concat(request[:16], make([]byte, 72), request[len(request)-8:])
	case k.Spec["reply"] == "ack":
		return request[:min(k.word, len(request))]
	}
	return request
}

// Drain waits for STOP, and then until it is quiet (C-15).
func (k *Kit) Drain() {
	<-k.stopped.Done()
	stopNs, lingerNs, quietNs := NowNs(), k.Integer("linger_ms")*msNs, k.Integer("quiet_ms")*msNs
	for NowNs() < min(stopNs+lingerNs, max(stopNs, k.arrivalNs.Load())+quietNs) {
		time.Sleep(2 * time.Millisecond)
	}
}
