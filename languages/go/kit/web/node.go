// Package web holds what cells of calls share. It is no part of the kit.
package web

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"

	"wattwire"
)

// Run runs a node whose client is its ping, too, and whose server is its pong.
func Run(client, server func(*wattwire.Kit), settings, capabilities string) {
	wattwire.Run(map[string]func(*wattwire.Kit){
		"client": client, "server": server, "ping": client, "pong": server,
	}, settings, capabilities)
}

// Check ends the node with 4 where a library reports an error.
func Check(err error) {
	if err != nil {
		panic(err)
	}
}

// Encoding is how payloads of this run travel, literals as text. Longer ones than the middleware
// carries are refused.
func Encoding(kit *wattwire.Kit, bytesMax, recordBytesMax int64) string {
	encoding, length := kit.String("payload.encoding"), kit.Integer("payload.bytes")
	most := map[bool]int64{true: recordBytesMax, false: bytesMax}[encoding == "record"]
	wattwire.Must(length <= most, 3, nil, "payload.bytes %d; at most %d", length, most)
	if kit.String("payload.literal") != "" {
		return "text"
	}
	return encoding
}

// Endpoint is where the server is.
func Endpoint(kit *wattwire.Kit, allowed string) string {
	endpoints := kit.Spec["peers.endpoints"].([]any)
	wattwire.Must(len(endpoints) > 0, 2, "peers.endpoints", "found none; allowed: %s", allowed)
	return endpoints[0].(string)
}

// Listening tells where a server can be called.
func Listening(endpoint string) {
	wattwire.Print("LISTENING", map[string]any{"endpoints": []string{endpoint}})
}

// Trust has a client accept what the run's authority has signed for a host, and nothing else. An
// empty host is that of the address which is dialed; without TLS it is nil.
func Trust(kit *wattwire.Kit, host string) *tls.Config {
	path := kit.String("tls.authority")
	if path == "" {
		return nil
	}
	text, err := os.ReadFile(path)
	Check(err)
	trust := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: host}
	trust.RootCAs.AppendCertsFromPEM(text)
	return trust
}

// Ready prints READY. A server has nothing to match and passes nil; keep_alive is added.
func Ready(kit *wattwire.Kit, library, version string, matched, discoveryNs any,
	effective map[string]any) {
	effective["keep_alive"] = "on"
	if kit.String("settings.keep_alive") == "off" {
		effective["keep_alive"] = "off"
	}
	wattwire.Print("READY", map[string]any{
		"matched": matched, "discovery_ns": discoveryNs, "effective": effective,
		"startup_ns": wattwire.NowNs() - wattwire.BeganNs,
		"library": map[string]string{"name": library, "version": version,
			"build": runtime.Version()},
		"guarantee": map[string]string{"delivery": "reliable", "ordering": "none",
			"overload": "block"},
	})
}

var noDelay atomic.Bool

// NoDelay is what the newest socket of this node says of TCP_NODELAY, which Go switches on by
// itself; a server that has none yet says what its sockets will have.
func NoDelay(kit *wattwire.Kit, hasSocket bool) bool {
	return hasSocket && noDelay.Load() || !hasSocket && kit.String("settings.tcp_nodelay") != "off"
}

// Prepare gives a new connection its settings.
func Prepare(kit *wattwire.Kit, conn net.Conn) error {
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

// Listener gives every connection that it accepts its settings.
type Listener struct {
	net.Listener
	kit *wattwire.Kit
}

// Listen takes a free port.
func Listen(kit *wattwire.Kit) Listener {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	Check(err)
	return Listener{listener, kit}
}

// Accept passes over connections that were left again before their settings were made.
func (l Listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if Prepare(l.kit, conn) == nil {
			return conn, nil
		}
		conn.Close()
	}
}
