// gRPC node: grpc-go at both ends.
package main

import (
	"runtime"

	"google.golang.org/grpc"
	"wattwire"
)

func main() {
	wattwire.Run(
		map[string]func(*wattwire.Kit){
			"client": client, "server": server, "ping": client, "pong": server,
		},
		"keep_alive tls server_workers",
		"encoding.bytes encoding.text encoding.record pacing.kit loop.open loop.closed "+
			"reply.echo reply.ack reply.literal literal async_client tls",
	)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// method names what payloads of this run are handed to, and refuses those that are too long.
func method(kit *wattwire.Kit) string {
	encoding, length := kit.String("payload.encoding"), kit.Integer("payload.bytes")
	most := map[bool]int64{true: 3_000_000, false: 4_000_000}[encoding == "record"]
	wattwire.Must(length <= most, 3, nil, "payload.bytes %d; at most %d", length, most)
	if kit.String("payload.literal") != "" {
		return "text"
	}
	return encoding
}

func ready(kit *wattwire.Kit, matched, discoveryNs any, tls string) {
	keepAlive := "on"
	if kit.String("settings.keep_alive") == "off" {
		keepAlive = "off"
	}
	wattwire.Print("READY", map[string]any{
		"matched": matched, "discovery_ns": discoveryNs,
		"startup_ns": wattwire.NowNs() - wattwire.BeganNs,
		"effective": map[string]any{"keep_alive": keepAlive, "tls": tls,
			"server_workers": kit.Spec["settings.server_workers"],
			"gomaxprocs":     runtime.GOMAXPROCS(0)},
		"library": map[string]string{"name": "grpc-go", "version": grpc.Version,
			"build": runtime.Version()},
		"guarantee": map[string]string{"delivery": "reliable", "ordering": "none",
			"overload": "block"},
	})
}
