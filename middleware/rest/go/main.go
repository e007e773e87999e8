// REST node: net/http at both ends.
package main

import (
	"runtime"
	"slices"

	"wattwire"
	"wattwire/web"
)

func main() { web.Run(client, server) }

// bodies describes the bodies of this run.
func bodies(kit *wattwire.Kit) (isRecord bool, contentType string) {
	encoding := web.Encoding(kit.Spec)
	types := map[string]string{"bytes": "application/octet-stream",
		"text": "text/plain; charset=utf-8", "record": "application/json"}
	return encoding == "record", types[encoding]
}

func ready(kit *wattwire.Kit, discoveryNs *int64, effective map[string]any) {
	effective["tcp_nodelay"] = web.NoDelay(kit.Spec, discoveryNs != nil)
	effective["server"] = "net/http of " + runtime.Version()
	effective["server_workers"] = runtime.GOMAXPROCS(0)
	web.Ready(kit, "net/http", runtime.Version(), discoveryNs, effective)
}

// asksFor reports whether the setting requests this HTTP version.
func asksFor(kit *wattwire.Kit, versions ...string) bool {
	return slices.Contains(versions, kit.Spec.Settings.Text("http_version"))
}
