// A node without a middleware: each call is its own reply, and its server is handed requests.
package main

import (
	"time"

	"wattwire"
)

func main() {
	wattwire.Run(wattwire.Roles{"client": client, "server": server})
}

func client(kit *wattwire.Kit) {
	ready(kit)
	kit.Calls(func(message []byte, _ time.Duration) ([]byte, error) { return message, nil })
}

// server hands its kit the requests before READY, when nothing else runs.
func server(kit *wattwire.Kit) {
	sender := uint64(kit.Spec.PeersNodes[0])
	requests := make([][]byte, kit.Spec.Settings.Integer("arrivals"))
	for counter := range requests {
		requests[counter] = kit.Payload.New()
		kit.Payload.Stamp(requests[counter], sender<<48|uint64(counter), wattwire.NowNs())
	}
	for _, request := range requests {
		kit.Serve(request, func([]byte) error { return nil })
	}
	ready(kit)
	kit.Drain()
}

func ready(kit *wattwire.Kit) {
	kit.Ready(wattwire.Ready{
		Library: wattwire.Library{Name: "nothing", Version: "1"},
		Guarantee: wattwire.Guarantee{Delivery: "best_effort", Ordering: "none",
			Overload: "drop_newest"},
	})
}
