// A node without a middleware: each call is its own reply, and its server is handed requests.
package main

import (
	"slices"
	"time"

	"wattwire"
)

func main() {
	wattwire.Run(
		map[string]func(*wattwire.Kit){"client": client, "server": server},
		"arrivals", "encoding.bytes pacing.kit loop.open reply.echo",
	)
}

func client(kit *wattwire.Kit) {
	ready()
	kit.Calls(func(message []byte, _ time.Duration) ([]byte, error) { return message, nil })
}

// server hands its kit the requests before READY, when nothing else runs.
func server(kit *wattwire.Kit) {
	sender := uint64(kit.Spec["peers.nodes"].([]any)[0].(float64))
	requests := make([][]byte, kit.Integer("settings.arrivals"))
	for counter := range requests {
		requests[counter] = slices.Clone(kit.Template)
		kit.Stamp(requests[counter], sender<<48|uint64(counter), wattwire.NowNs())
	}
	for _, request := range requests {
		kit.Serve(request, func([]byte) error { return nil })
	}
	ready()
	kit.Drain()
}

func ready() {
	wattwire.Print("READY", map[string]any{
		"matched": nil, "discovery_ns": nil, "effective": map[string]any{},
		"startup_ns": wattwire.NowNs() - wattwire.BeganNs,
		"library":    map[string]string{"name": "nothing", "version": "1", "build": ""},
		"guarantee": map[string]string{"delivery": "best_effort", "ordering": "none",
			"overload": "drop_newest"},
	})
}
