// gRPC node: grpc-go at both ends.
package main

import (
	"runtime"

	"google.golang.org/grpc"
	"wattwire"
	"wattwire/web"
)

func main() {
	web.Run(client, server,
		[]string{"keep_alive", "tls", "server_workers"},
		[]string{
			"encoding.bytes", "encoding.text", "encoding.record", "pacing.kit", "loop.open",
			"loop.closed", "reply.echo", "reply.ack", "reply.literal", "literal", "async_client",
			"tls",
		},
	)
}

// method returns the name of the method for this run's payloads.
func method(kit *wattwire.Kit) string { return web.Encoding(kit.Spec, 4_000_000, 3_000_000) }

func ready(kit *wattwire.Kit, discoveryNs *int64, tls string) {
	web.Ready(kit, "grpc-go", grpc.Version, discoveryNs, map[string]any{
		"tls": tls, "gomaxprocs": runtime.GOMAXPROCS(0),
		"server_workers": kit.Spec.Settings.Integer("server_workers"),
	})
}
