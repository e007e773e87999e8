// RPC node: net/rpc at both ends, gob over a TCP connection.
package main

import (
	"runtime"

	"wattwire"
	"wattwire/web"
)

func main() { web.Run(client, server) }

// procedure returns the name of the procedure for this run's payloads.
func procedure(kit *wattwire.Kit) string {
	return map[string]string{"bytes": "Calls.Bytes", "text": "Calls.Text",
		"record": "Calls.Record"}[web.Encoding(kit.Spec)]
}

func ready(kit *wattwire.Kit, discoveryNs *int64, tls string) {
	web.Ready(kit, "net/rpc", runtime.Version(), discoveryNs, map[string]any{
		"tcp_nodelay": web.NoDelay(kit.Spec, discoveryNs != nil), "tls": tls, "wire": "net-rpc",
		"server":         "net/rpc of " + runtime.Version(),
		"server_workers": runtime.GOMAXPROCS(0),
	})
}
