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

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// prepare gives a socket its settings before it connects or listens: buffers count before the
// handshake.
func prepare(kit *wattwire.Kit) func(string, string, syscall.RawConn) error {
	return func(_, _ string, raw syscall.RawConn) error {
		var failed error
		err := raw.Control(func(fd uintptr) {
			set := func(level, option int, value int64) {
				err := syscall.SetsockoptInt(int(fd), level, option, int(value))
				if err != nil {
					failed = err
				}
			}
			if bytes := kit.Integer("settings.receive_buffer_bytes"); bytes > 0 {
				set(syscall.SOL_SOCKET, syscall.SO_RCVBUF, bytes)
			}
			if bytes := kit.Integer("settings.send_buffer_bytes"); bytes > 0 {
				set(syscall.SOL_SOCKET, syscall.SO_SNDBUF, bytes)
			}
			if kit.Spec["settings.tcp_nodelay"] == true {
				set(syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1)
			}
		})
		if err == nil {
			err = failed
		}
		return err
	}
}

// connect gives a stream to the only server.
func connect(kit *wattwire.Kit) *stream {
	endpoints := kit.Spec["peers.endpoints"].([]any)
	wattwire.Must(len(endpoints) > 0, 2, "peers.endpoints", "found none; allowed: HOST:PORT")
	dialer := net.Dialer{Control: prepare(kit),
		Timeout: time.Duration(kit.Integer("ready_timeout_ms")) * time.Millisecond}
	conn, err := dialer.Dial("tcp4", endpoints[0].(string))
	check(err)
	s, err := newStream(kit, conn.(*net.TCPConn))
	check(err)
	return s
}

// listen accepts on settings.bind_address, lets serve have each stream, and prints READY once as
// many clients as are expected are there.
func listen(kit *wattwire.Kit, serve func(*stream)) {
	config := net.ListenConfig{Control: prepare(kit)}
	own := net.JoinHostPort(kit.String("settings.bind_address"), "0")
	listener, err := config.Listen(context.Background(), "tcp4", own)
	check(err)
	wattwire.Print("LISTENING", map[string]any{"endpoints": []string{listener.Addr().String()}})
	beginNs, accepted := wattwire.NowNs(), atomic.Int64{}
	go func() {
		defer wattwire.Guard()
		for {
			conn, err := listener.Accept()
			check(err)
			s, err := newStream(kit, conn.(*net.TCPConn))
			if err != nil {
				continue // it has left already
			}
			accepted.Add(1)
			go func() {
				defer wattwire.Guard()
				serve(s)
			}()
		}
	}()
	limitMs, wanted := kit.Integer("ready_timeout_ms"), kit.Integer("peers.count")
	for ; accepted.Load() < wanted; time.Sleep(time.Millisecond) {
		waitedNs := wattwire.NowNs() - beginNs
		wattwire.Must(waitedNs < limitMs*1_000_000, 4, nil, "%d of %d clients connected within "+
			"ready_timeout_ms = %d; are they running?", accepted.Load(), wanted, limitMs)
	}
	raw, err := listener.(*net.TCPListener).SyscallConn()
	check(err)
	ready(kit, raw, accepted.Load(), wattwire.NowNs()-beginNs)
}

// ready prints READY; the socket is asked what is in force.
func ready(kit *wattwire.Kit, raw syscall.RawConn, matched, discoveryNs int64) {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	check(err)
	effective := map[string]any{"transport": "tcp/ipv4"}
	for _, name := range []string{"tcp_quickack", "writes", "bind_address"} {
		effective[name] = kit.Spec["settings."+name]
	}
	check(raw.Control(func(fd uintptr) {
		ask := func(level, option int) int {
			value, err := syscall.GetsockoptInt(int(fd), level, option)
			check(err)
			return value
		}
		effective["tcp_nodelay"] = ask(syscall.IPPROTO_TCP, syscall.TCP_NODELAY) != 0
		effective["receive_buffer_bytes"] = ask(syscall.SOL_SOCKET, syscall.SO_RCVBUF)
		effective["send_buffer_bytes"] = ask(syscall.SOL_SOCKET, syscall.SO_SNDBUF)
		effective["segment_bytes"] = ask(syscall.IPPROTO_TCP, syscall.TCP_MAXSEG)
	}))
	wattwire.Print("READY", map[string]any{
		"matched": matched, "discovery_ns": discoveryNs, "effective": effective,
		"startup_ns": wattwire.NowNs() - wattwire.BeganNs,
		"library": map[string]string{"name": "socket", "version": strings.TrimSpace(string(release)),
			"build": runtime.Version()},
		"guarantee": map[string]string{"delivery": "reliable", "ordering": "per_sender",
			"overload": "block"},
	})
}
