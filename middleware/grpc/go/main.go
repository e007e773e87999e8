// gRPC node: grpc-go at both ends.
package main

import (
	"runtime"

	"google.golang.org/grpc"
	"wattwire"
	"wattwire/web"
)

func main() { web.Run(client, server) }

// method returns the name of the method for this run's payloads.
func method(kit *wattwire.Kit) string { return web.Encoding(kit.Spec) }

func ready(kit *wattwire.Kit, discoveryNs *int64, tls string) {
	web.Ready(kit, "grpc-go", grpc.Version, discoveryNs, map[string]any{
		"tls": tls, "gomaxprocs": runtime.GOMAXPROCS(0),
	})
}
