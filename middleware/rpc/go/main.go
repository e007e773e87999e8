// RPC node: net/rpc at both ends, gob over a TCP connection.
package main

import (
	"net"
	"runtime"
	"sync/atomic"
	"syscall"

	"wattwire"
)

func main() {
	wattwire.Run(
		map[string]func(*wattwire.Kit){
			"client": client, "server": server, "ping": client, "pong": server,
		},
		"keep_alive tcp_nodelay tls server_workers",
		"encoding.bytes encoding.text encoding.record pacing.kit loop.open loop.closed "+
			"reply.echo reply.ack reply.literal literal async_client tls",
	)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// procedure names what payloads of this run are handed to, and refuses those that are too long.
func procedure(kit *wattwire.Kit) string {
	encoding, length := kit.String("payload.encoding"), kit.Integer("payload.bytes")
	most := map[bool]int64{true: 4_194_304, false: 16_777_216}[encoding == "record"]
	wattwire.Must(length <= most, 3, nil, "payload.bytes %d; at most %d", length, most)
	if kit.String("payload.literal") != "" {
		encoding = "text"
	}
	return map[string]string{"bytes": "Calls.Bytes", "text": "Calls.Text",
		"record": "Calls.Record"}[encoding]
}

// noDelay is what the sockets of this node say of TCP_NODELAY, which Go switches on by itself.
var noDelay atomic.Bool

// prepare gives a new connection its settings.
func prepare(kit *wattwire.Kit, conn net.Conn) error {
	tcp := conn.(*net.TCPConn)
	if setting := kit.String("settings.tcp_nodelay"); setting != "default" {
		if err := tcp.SetNoDelay(setting == "on"); err != nil {
			return err
		}
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Control(func(fd uintptr) {
		value, _ := syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_NODELAY)
		noDelay.Store(value != 0)
	})
}

func ready(kit *wattwire.Kit, matched, discoveryNs any, tls string) {
	keepAlive := "on"
	if kit.String("settings.keep_alive") == "off" {
		keepAlive = "off"
	}
	wattwire.Print("READY", map[string]any{
		"matched": matched, "discovery_ns": discoveryNs,
		"startup_ns": wattwire.NowNs() - wattwire.BeganNs,
		"effective": map[string]any{"keep_alive": keepAlive, "tcp_nodelay": noDelay.Load(),
			"tls": tls, "server": "net/rpc of " + runtime.Version(),
			"server_workers": runtime.GOMAXPROCS(0), "wire": "net-rpc"},
		"library": map[string]string{"name": "net/rpc", "version": runtime.Version(),
			"build": runtime.Version()},
		"guarantee": map[string]string{"delivery": "reliable", "ordering": "none",
			"overload": "block"},
	})
}
