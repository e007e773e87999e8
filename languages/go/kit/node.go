// Package wattwire implements the node contract for Go cells; languages/go/README.md shows its use.
package wattwire

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// Roles contains the function of each role of a cell.
type Roles map[string]func(*Kit)

// Kit is one node of one run. Any goroutine may use it.
type Kit struct {
	Spec    *Spec
	Payload *Payload
	Workers int // the maximum number of open calls (C-33)

	schedule *schedule
	window   *window

	lastArrivalNs atomic.Int64

	mutex   sync.Mutex // protects the fields below
	counts  counts
	firstNs int64 // begin of the first call
	lastNs  int64 // end of the last call
	samples *samples
}

// counts contains the counts of SENT and DONE (C-14, C-16).
type counts struct {
	sent, received, corrupt, foreign, probes int64
}

// Run runs this process as a node with these roles, and ends the process.
func Run(roles Roles) {
	defer Guard()
	syscall.CloseOnExec(int(lines.Fd()))
	arguments := os.Args[1:]
	if len(arguments) != 4 || arguments[0] != "--spec" || arguments[2] != "--out" {
		Fail(BadSpec, "command line", "found %q; allowed: --spec FILE --out DIR", arguments)
	}
	spec, err := ReadSpec(arguments[1])
	if err != nil {
		failSpec(err)
	}
	kit := newKit(spec)
	if lacking := kit.lacking(roles); len(lacking) > 0 {
		Fail(Unsupported, "", "this cell has no %s", strings.Join(lacking, ", "))
	}
	go kit.window.obey()
	roles[spec.Role](kit)
	kit.finish(filepath.Join(arguments[3], "samples.bin"))
	os.Exit(0)
}

func failSpec(err error) {
	key := "--spec"
	var specError *SpecError
	if errors.As(err, &specError) {
		key = specError.Key
	}
	Fail(BadSpec, key, "%v", err)
}

func newKit(spec *Spec) *Kit {
	kit := &Kit{
		Spec:     spec,
		Workers:  1,
		schedule: newSchedule(spec),
		window:   newWindow(),
		firstNs:  never,
		samples:  newSamples(spec.RecordCapacity),
	}
	arrivingFrom := spec.PeersNodes
	if kit.sends() { // its arrivals are replies, which carry its own node
		arrivingFrom = []int64{spec.Node}
	}
	kit.Payload = NewPayload(spec, arrivingFrom)
	if spec.Loop == "open" && kit.sends() {
		kit.Workers = int(spec.OutstandingMax)
	}
	return kit
}

func (k *Kit) sends() bool { return sendingRoles[k.Spec.Role] }

// lacking returns what the spec requires and does not declare (C-03).
func (k *Kit) lacking(roles Roles) []string {
	required := []string{
		"encoding." + k.Spec.PayloadEncoding,
		"loop." + k.Spec.Loop,
		"reply." + k.Spec.Reply,
	}
	if k.sends() {
		required = append(required, "pacing."+k.Spec.Pacing)
	}
	if k.Payload.isLiteral {
		required = append(required, "literal")
	}
	if k.Workers > 1 {
		required = append(required, "async_client")
	}
	lacking := slices.DeleteFunc(required, func(name string) bool {
		return slices.Contains(k.Spec.DeclaredCapabilities, name)
	})
	if roles[k.Spec.Role] == nil || !slices.Contains(k.Spec.DeclaredRoles, k.Spec.Role) {
		lacking = append(lacking, "role "+k.Spec.Role)
	}
	least, most := k.Spec.sizes()
	if size := k.Spec.PayloadBytes; size < least || size > most {
		reason := fmt.Sprintf("payload.bytes %d (supported: %d to %d)", size, least, most)
		lacking = append(lacking, reason)
	}
	return append(lacking, k.Spec.unsupported...)
}

// recordSample stores a sample; whenNs decides on its warm-up flag (C-13). The caller holds the
// mutex.
func (k *Kit) recordSample(sample Sample, whenNs int64) {
	sample.Kind = kindCall
	if whenNs-k.Spec.WarmupNs < k.window.startNs.Load() {
		sample.Flags |= flagWarmUp
	}
	k.samples.add(sample)
}

// finish writes the samples and prints DONE.
func (k *Kit) finish(path string) {
	k.mutex.Lock() // never unlocked, so nothing more is recorded
	s := k.Spec
	err := WriteSamples(path, roleCodes[s.Role], uint16(s.Node), s.PayloadSeed,
		k.samples.overflow, k.samples.kept)
	Check(err)
	printLine("DONE", struct {
		Sent     int64 `json:"sent"`
		Received int64 `json:"received"`
		Recorded int   `json:"recorded"`
		Overflow int64 `json:"overflow"`
		Foreign  int64 `json:"foreign"`
		Corrupt  int64 `json:"corrupt"`
		Probes   int64 `json:"probes"`
	}{
		Sent:     k.counts.sent,
		Received: k.counts.received,
		Recorded: len(k.samples.kept),
		Overflow: k.samples.overflow,
		Foreign:  k.counts.foreign,
		Corrupt:  k.counts.corrupt,
		Probes:   k.counts.probes,
	})
}
