// Package web contains the code that cells of calls share. It is not part of the kit.
package web

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"

	"wattwire"
)

// Run runs a node that uses its client also as ping, and its server also as pong.
func Run(client, server func(*wattwire.Kit)) {
	wattwire.Run(wattwire.Roles{
		"client": client, "server": server, "ping": client, "pong": server,
	})
}

// Encoding returns the encoding of this run's payloads; literals are text.
func Encoding(spec *wattwire.Spec) string {
	if spec.PayloadLiteral != "" {
		return "text"
	}
	return spec.PayloadEncoding
}

// Endpoint returns the server's address.
func Endpoint(spec *wattwire.Spec, allowed string) string {
	if len(spec.PeersEndpoints) == 0 {
		wattwire.Fail(wattwire.BadSpec, "peers.endpoints", "found none; allowed: %s", allowed)
	}
	return spec.PeersEndpoints[0]
}

// Trust returns a client's TLS configuration, which trusts only the run's authority, or nil without
// TLS. If host is empty, the certificate must match the host of the dialed address.
func Trust(spec *wattwire.Spec, host string) *tls.Config {
	if spec.TLSAuthority == "" {
		return nil
	}
	text, err := os.ReadFile(spec.TLSAuthority)
	wattwire.Check(err)
	trust := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: host}
	trust.RootCAs.AppendCertsFromPEM(text)
	return trust
}

// Ready prints READY. A server has no peers to match, so its discoveryNs is nil.
func Ready(kit *wattwire.Kit, library, version string, discoveryNs *int64,
	effective map[string]any) {
	effective["keep_alive"] = "on"
	if !KeepsConnections(kit.Spec) {
		effective["keep_alive"] = "off"
	}
	ready := wattwire.Ready{
		DiscoveryNs: discoveryNs,
		Library:     wattwire.Library{Name: library, Version: version, Build: runtime.Version()},
		Effective:   effective,
		Guarantee: wattwire.Guarantee{Delivery: "reliable", Ordering: "none",
			Overload: "block"},
	}
	if discoveryNs != nil {
		server := int64(1)
		ready.Matched = &server
	}
	kit.Ready(ready)
}

// KeepsConnections reports whether a connection carries more than one call.
func KeepsConnections(spec *wattwire.Spec) bool {
	return spec.Settings.Text("keep_alive") != "off"
}

var noDelay atomic.Bool

// NoDelay returns TCP_NODELAY of this node's newest socket; Go sets it by default. A server without
// a connection returns the value that its sockets will have.
func NoDelay(spec *wattwire.Spec, hasSocket bool) bool {
	if hasSocket {
		return noDelay.Load()
	}
	return spec.Settings.Text("tcp_nodelay") != "off"
}

// Prepare applies the settings to a new connection.
func Prepare(spec *wattwire.Spec, conn net.Conn) error {
	tcp := conn.(*net.TCPConn)
	if setting := spec.Settings.Text("tcp_nodelay"); setting != "default" {
		if err := tcp.SetNoDelay(setting == "on"); err != nil {
			return err
		}
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return err
	}
	var unread error
	err = raw.Control(func(fd uintptr) {
		var value int
		value, unread = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_NODELAY)
		noDelay.Store(value != 0)
	})
	return errors.Join(err, unread)
}

// Listener applies the settings to every connection that it accepts.
type Listener struct {
	net.Listener
	spec *wattwire.Spec
}

// Listen listens on a free port of host.address.
func Listen(spec *wattwire.Spec) Listener {
	listener, err := net.Listen("tcp4", net.JoinHostPort(spec.HostAddress, "0"))
	wattwire.Check(err)
	return Listener{listener, spec}
}

// Accept skips connections that were closed before their settings could be applied.
func (l Listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if Prepare(l.spec, conn) == nil {
			return conn, nil
		}
		conn.Close()
	}
}
