// REST node: net/http at both ends.
package main

import (
	"net"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"

	"wattwire"
)

func main() {
	wattwire.Run(
		map[string]func(*wattwire.Kit){
			"client": client, "server": server, "ping": client, "pong": server,
		},
		"keep_alive tcp_nodelay http_version tls server_workers",
		"encoding.bytes encoding.text encoding.record pacing.kit loop.open loop.closed "+
			"reply.echo reply.ack reply.literal literal async_client tls",
	)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// bodies says what payloads look like in this run, and refuses those that are too long.
func bodies(kit *wattwire.Kit) (isRecord bool, contentType string) {
	encoding, length := kit.String("payload.encoding"), kit.Integer("payload.bytes")
	most := map[bool]int64{true: 4_194_304, false: 16_777_216}[encoding == "record"]
	wattwire.Must(length <= most, 3, nil, "payload.bytes %d; at most %d", length, most)
	types := map[string]string{"bytes": "application/octet-stream",
		"text": "text/plain; charset=utf-8", "record": "application/json"}
	if kit.String("payload.literal") != "" {
		encoding = "text"
	}
	return encoding == "record", types[encoding]
}

// noDelay is what the sockets of this node say of TCP_NODELAY, which Go switches on by itself.
var noDelay atomic.Bool

// prepared gives a new connection its settings.
func prepared(kit *wattwire.Kit, conn net.Conn) (net.Conn, error) {
	tcp := conn.(*net.TCPConn)
	if setting := kit.String("settings.tcp_nodelay"); setting != "default" {
		if err := tcp.SetNoDelay(setting == "on"); err != nil {
			return nil, err
		}
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil, err
	}
	return conn, raw.Control(func(fd uintptr) {
		value, _ := syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_NODELAY)
		noDelay.Store(value != 0)
	})
}

func ready(kit *wattwire.Kit, matched, discoveryNs any, effective map[string]any) {
	effective["keep_alive"] = "on"
	if kit.String("settings.keep_alive") == "off" {
		effective["keep_alive"] = "off"
	}
	effective["tcp_nodelay"] = noDelay.Load()
	effective["server"] = "net/http of " + runtime.Version()
	effective["server_workers"] = runtime.GOMAXPROCS(0)
	wattwire.Print("READY", map[string]any{
		"matched": matched, "discovery_ns": discoveryNs, "effective": effective,
		"startup_ns": wattwire.NowNs() - wattwire.BeganNs,
		"library": map[string]string{"name": "net/http", "version": runtime.Version(),
			"build": runtime.Version()},
		"guarantee": map[string]string{"delivery": "reliable", "ordering": "none",
			"overload": "block"},
	})
}

// asksFor tells whether the client asks for a version of HTTP; default is as the library does.
func asksFor(kit *wattwire.Kit, versions ...string) bool {
	return slices.Contains(versions, kit.String("settings.http_version"))
}
