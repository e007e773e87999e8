package wattwire

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// ExitCode is the exit code of the process (C-02 to C-04, C-09).
type ExitCode int

// The codes of a node that fails.
const (
	BadSpec          ExitCode = 2
	Unsupported      ExitCode = 3 // the cell does not support the spec
	MiddlewareFailed ExitCode = 4
	inputEnded       ExitCode = 5
)

var lines = os.NewFile(3, "lines") // C-05

// Fail prints ERROR and ends the node. With BadSpec, key is the spec's key; otherwise it is "".
func Fail(code ExitCode, key, format string, arguments ...any) {
	fields := struct {
		Code   ExitCode `json:"code"`
		Key    *string  `json:"key"`
		Reason string   `json:"reason"`
	}{Code: code, Reason: fmt.Sprintf(format, arguments...)}
	if key != "" {
		fields.Key = &key
	}
	printLine("ERROR", fields)
	os.Exit(int(code))
}

// Check ends the node if its middleware reports an error.
func Check(err error) {
	if err != nil {
		Fail(MiddlewareFailed, "", "%v", err)
	}
}

// Guard, deferred in a goroutine, reports its panics as failures of the middleware.
func Guard() {
	if reason := recover(); reason != nil {
		Fail(MiddlewareFailed, "", "%v", reason)
	}
}

func printLine(keyword string, fields any) {
	text, err := json.Marshal(fields)
	if err == nil {
		_, err = fmt.Fprintf(lines, "%s %s\n", keyword, text)
	}
	if err != nil { // only the log can report this error
		fmt.Fprintf(os.Stderr, "%s: %v\n", keyword, err)
		os.Exit(int(MiddlewareFailed))
	}
}

// Listening prints LISTENING with the addresses at which this node accepts calls.
func Listening(endpoints ...string) {
	printLine("LISTENING", struct {
		Endpoints []string `json:"endpoints"`
	}{endpoints})
}

// Library is the middleware's library.
type Library struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Build   string `json:"build"`
}

// Guarantee is the middleware's guarantee, in the terms of C-07.
type Guarantee struct {
	Delivery string `json:"delivery"`
	Ordering string `json:"ordering"`
	Overload string `json:"overload"`
}

// Ready contains the fields of READY; unknown values are nil. The kit adds the settings that
// Effective lacks, with their requested values.
type Ready struct {
	Matched     *int64         `json:"matched"`
	DiscoveryNs *int64         `json:"discovery_ns"`
	Library     Library        `json:"library"`
	Effective   map[string]any `json:"effective"`
	Guarantee   Guarantee      `json:"guarantee"`
}

// Ready prints READY.
func (k *Kit) Ready(r Ready) {
	effective := maps.Clone(map[string]any(k.Spec.Settings))
	maps.Copy(effective, r.Effective)
	r.Effective = effective
	printLine("READY", struct {
		Ready
		StartupNs int64 `json:"startup_ns"`
	}{r, NowNs() - beganNs})
}

// window is the time from GO to STOP, which standard input announces.
type window struct {
	startNs atomic.Int64 // never, until GO
	isOver  atomic.Bool
	begun   chan struct{} // closed at GO, or at a STOP without GO
	over    chan struct{} // closed at STOP

	beginOnce, endOnce sync.Once
}

func newWindow() *window {
	w := &window{begun: make(chan struct{}), over: make(chan struct{})}
	w.startNs.Store(never)
	return w
}

// obey reads GO and STOP from standard input. At its end it ends the process (C-08, C-09).
func (w *window) obey() {
	for input := bufio.NewScanner(os.Stdin); input.Scan(); {
		word, rest, _ := strings.Cut(input.Text(), " ")
		switch word {
		case "GO":
			startNs, err := strconv.ParseInt(rest, 10, 64)
			if nowNs := NowNs(); err != nil || startNs <= nowNs {
				Fail(BadSpec, "GO", "found %s; allowed: a time after %d", rest, nowNs)
			}
			w.begin(startNs)
		case "STOP":
			w.end()
		default:
			Fail(BadSpec, "GO", "found %s; allowed: GO and a time, STOP", word)
		}
	}
	os.Exit(int(inputEnded))
}

func (w *window) begin(startNs int64) {
	w.startNs.Store(startNs)
	w.beginOnce.Do(func() { close(w.begun) })
}

func (w *window) end() {
	w.isOver.Store(true)
	w.beginOnce.Do(func() { close(w.begun) })
	w.endOnce.Do(func() { close(w.over) })
}
