// Package wattwire is the node contract for Go cells; languages/go/README.md shows its use.
package wattwire

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"syscall"
	_ "unsafe" // for go:linkname
)

var (
	processStartNs = NowNs()
	lines          = os.NewFile(3, "lines") // C-05
)

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
		reason := fmt.Sprintf(format, found...)
		Print("ERROR", map[string]any{"code": code, "key": key, "reason": reason})
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

// keys of a spec by the type of their values, as encoding/json has it.
var keys = map[string]string{
	"float64": `contract node index peers.count period_ns phase_ns duration_ns count warmup_ns
		overrun_ns timeout_ns outstanding_max quiet_ms linger_ms ready_timeout_ms spin_ns
		payload.bytes payload.seed action.feedback record.capacity`,
	"string": `run cell pattern role loop pacing payload.encoding payload.literal reply
		reply.literal verify tls.authority tls.certificate tls.key`,
	"[]interface {}": "peers.nodes peers.endpoints",
}

// Spec is what the harness asks for; its getters panic on a key that is not there.
type Spec map[string]any

func (s Spec) String(key string) string { return s[key].(string) }
func (s Spec) Integer(key string) int64 { return int64(s[key].(float64)) }
func (s Spec) Boolean(key string) bool  { return s[key].(bool) }

func (s Spec) isClient() bool { return s["role"] == "client" || s["role"] == "ping" }
func (s Spec) isOpen() bool   { return s["loop"] == "open" }

// Workers says how many calls may be open at once (C-33).
func (s Spec) Workers() int {
	if s.isOpen() {
		return int(s.Integer("outstanding_max"))
	}
	return 1
}

// Cell is what a program is: its roles, and words for its settings and what it declares.
type Cell struct {
	Roles                  map[string]func(*Kit)
	Settings, Capabilities string
}

// Run runs this node and ends the process.
func Run(cell Cell) {
	defer Guard()
	syscall.CloseOnExec(3)
	Must(len(os.Args) == 5 && os.Args[1] == "--spec" && os.Args[3] == "--out", 2, "command line",
		"found %q; allowed: --spec FILE --out DIR", os.Args[1:])
	spec := ReadSpec(os.Args[2], cell.Settings)
	cell.check(spec)
	kit := newKit(spec)
	go kit.listen()
	cell.Roles[spec.String("role")](kit)
	kit.finish(os.Args[4])
}

// ReadSpec reads a spec whose values the harness has checked; here are its types (C-02).
func ReadSpec(path, settings string) (spec Spec) {
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &spec)
	}
	Must(err == nil && spec != nil, 2, "--spec", "%s: %v; allowed: a JSON object", path, err)
	for kind, names := range keys {
		for _, key := range strings.Fields(names) {
			found := fmt.Sprintf("%T", spec[key])
			Must(found == kind, 2, key, "%s: found %s; allowed: %s", key, found, kind)
		}
	}
	for key := range spec {
		name := strings.TrimPrefix(key, "settings.")
		Must(name == key || has(settings, name), 2, key, "%s; allowed: %s", key, settings)
	}
	Must(spec["contract"] == 2.0, 2, "contract", "found %v; allowed: 2", spec["contract"])
	return spec
}

func has(words, word string) bool { return strings.Contains(" "+words+" ", " "+word+" ") }

// check finds what the spec asks for and the cell lacks (C-03).
func (c Cell) check(s Spec) {
	encoding, literal := s.String("payload.encoding"), s["payload.literal"] != ""
	for name, asked := range map[string]bool{
		"encoding." + encoding: true, "loop." + s.String("loop"): true, "literal": literal,
		"reply." + s.String("reply"): true, "pacing." + s.String("pacing"): s.isClient(),
		"tls": s["tls.authority"] != "", "async_client": s.isClient() && s.Workers() > 1,
	} {
		Must(!asked || has(c.Capabilities, name), 3, nil, "%s; there are %s", name, c.Capabilities)
	}
	least := map[string]int64{"bytes": 16, "text": 32, "record": 96}[encoding]
	Must(literal || s.Integer("payload.bytes") >= least, 3, nil, "payload.bytes below %d", least)
	Must(c.Roles[s.String("role")] != nil, 3, nil, "role %s", s["role"])
}

// listen obeys standard input until it ends, and then ends the process (C-08, C-09).
func (k *Kit) listen() {
	for input := bufio.NewScanner(os.Stdin); input.Scan(); {
		var startNs int64
		count, _ := fmt.Sscanf(input.Text(), "GO %d", &startNs)
		Must(input.Text() == "STOP" || count == 1 && startNs > NowNs(), 2, "GO",
			"found %q at %d; allowed: GO <later>, STOP", input.Text(), NowNs())
		if count == 0 {
			k.stop()
		} else if k.startNs.CompareAndSwap(never, startNs) {
			k.start()
		}
	}
	os.Exit(5)
}
