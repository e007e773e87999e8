package main

import (
	"context"
	"net"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"wattwire"
)

// prepare configures a socket before it connects or listens, because buffer sizes apply to the
// handshake.
func prepare(settings wattwire.Settings) func(string, string, syscall.RawConn) error {
	return func(_, _ string, raw syscall.RawConn) error {
		var failed error
		err := raw.Control(func(fd uintptr) {
			set := func(level, option int, value int64) {
				err := syscall.SetsockoptInt(int(fd), level, option, int(value))
				if err != nil {
					failed = err
				}
			}
			if bytes := settings.Integer("receive_buffer_bytes"); bytes > 0 {
				set(syscall.SOL_SOCKET, syscall.SO_RCVBUF, bytes)
			}
			if bytes := settings.Integer("send_buffer_bytes"); bytes > 0 {
				set(syscall.SOL_SOCKET, syscall.SO_SNDBUF, bytes)
			}
			if settings.Flag("tcp_nodelay") {
				set(syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1)
			}
		})
		if err == nil {
			err = failed
		}
		return err
	}
}

// connect returns a stream to the only server.
func connect(kit *wattwire.Kit) *stream {
	endpoints, control := kit.Spec.PeersEndpoints, prepare(kit.Spec.Settings)
	if len(endpoints) == 0 {
		wattwire.Fail(wattwire.BadSpec, "peers.endpoints", "found none; allowed: HOST:PORT")
	}
	dialer := net.Dialer{
		Control: control,
		Timeout: time.Duration(kit.Spec.ReadyTimeoutMs) * time.Millisecond,
	}
	conn, err := dialer.Dial("tcp4", endpoints[0])
	wattwire.Check(err)
	s, err := newStream(kit, conn.(*net.TCPConn))
	wattwire.Check(err)
	return s
}

// listenAddress returns the address on which this node listens: the setting, or the host's if the
// setting is empty.
func listenAddress(kit *wattwire.Kit) string {
	if setting := kit.Spec.Settings.Text("bind_address"); setting != "" {
		return setting
	}
	return kit.Spec.HostAddress
}

// listen accepts connections on listenAddress, passes each stream to serve, and prints READY when
// the expected number of clients has connected.
func listen(kit *wattwire.Kit, serve func(*stream)) {
	config := net.ListenConfig{Control: prepare(kit.Spec.Settings)}
	own := net.JoinHostPort(listenAddress(kit), "0")
	listener, err := config.Listen(context.Background(), "tcp4", own)
	wattwire.Check(err)
	wattwire.Listening(listener.Addr().String())
	beginNs, accepted := wattwire.NowNs(), atomic.Int64{}
	go func() {
		defer wattwire.Guard()
		for {
			conn, err := listener.Accept()
			wattwire.Check(err)
			s, err := newStream(kit, conn.(*net.TCPConn))
			if err != nil {
				continue // the client has already closed the connection
			}
			accepted.Add(1)
			go func() {
				defer wattwire.Guard()
				serve(s)
			}()
		}
	}()
	limitMs, expected := kit.Spec.ReadyTimeoutMs, kit.Spec.PeersCount
	for ; accepted.Load() < expected; time.Sleep(time.Millisecond) {
		if wattwire.NowNs()-beginNs >= limitMs*1_000_000 {
			wattwire.Fail(wattwire.MiddlewareFailed, "", "%d of %d clients connected within "+
				"ready_timeout_ms = %d; are they running?", accepted.Load(), expected, limitMs)
		}
	}
	raw, err := listener.(*net.TCPListener).SyscallConn()
	wattwire.Check(err)
	ready(kit, raw, accepted.Load(), wattwire.NowNs()-beginNs)
}

// ready prints READY with the options of the socket.
func ready(kit *wattwire.Kit, raw syscall.RawConn, matched, discoveryNs int64) {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	wattwire.Check(err)
	effective := map[string]any{"transport": "tcp/ipv4", "bind_address": listenAddress(kit)}
	wattwire.Check(raw.Control(func(fd uintptr) {
		ask := func(level, option int) int {
			value, err := syscall.GetsockoptInt(int(fd), level, option)
			wattwire.Check(err)
			return value
		}
		effective["tcp_nodelay"] = ask(syscall.IPPROTO_TCP, syscall.TCP_NODELAY) != 0
		effective["receive_buffer_bytes"] = ask(syscall.SOL_SOCKET, syscall.SO_RCVBUF)
		effective["send_buffer_bytes"] = ask(syscall.SOL_SOCKET, syscall.SO_SNDBUF)
		effective["segment_bytes"] = ask(syscall.IPPROTO_TCP, syscall.TCP_MAXSEG)
	}))
	kit.Ready(wattwire.Ready{
		Matched:     &matched,
		DiscoveryNs: &discoveryNs,
		Library: wattwire.Library{
			Name:    "socket",
			Version: strings.TrimSpace(string(release)),
			Build:   runtime.Version(),
		},
		Effective: effective,
		Guarantee: wattwire.Guarantee{Delivery: "reliable", Ordering: "per_sender",
			Overload: "block"},
	})
}
