package main

import (
	"crypto/tls"
	"errors"
	"net"
	"net/rpc"
	"os"
	"sync"
	"time"

	"wattwire"
	"wattwire/web"
)

// dialer connects to the server by the settings, and stores the version of TLS.
type dialer struct {
	spec    *wattwire.Spec
	address string
	trust   *tls.Config // nil: no TLS
	version string
}

func newDialer(spec *wattwire.Spec) *dialer {
	address := web.Endpoint(spec, "HOST:PORT")
	host, _, err := net.SplitHostPort(address)
	wattwire.Check(err)
	return &dialer{spec: spec, address: address, trust: web.Trust(spec, host), version: "none"}
}

func (d *dialer) dial(timeout time.Duration) (*rpc.Client, error) {
	deadline := time.Now().Add(timeout)
	conn, err := net.DialTimeout("tcp", d.address, timeout)
	if err == nil {
		err = web.Prepare(d.spec, conn)
	}
	if err != nil {
		return nil, err
	}
	if d.trust == nil {
		return rpc.NewClient(conn), nil
	}
	secure := tls.Client(conn, d.trust)
	err = errors.Join(conn.SetDeadline(deadline), secure.Handshake(), conn.SetDeadline(time.Time{}))
	if err != nil {
		conn.Close()
		return nil, err
	}
	d.version = tls.VersionName(secure.ConnectionState().Version)
	return rpc.NewClient(secure), nil
}

// called waits for the reply until the timeout; the library itself has no timeout.
func called(own *rpc.Client, name string, request, reply any, timeout time.Duration) error {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case done := <-own.Go(name, request, reply, make(chan *rpc.Call, 1)).Done:
		return done.Error
	case <-timer.C:
		return os.ErrDeadlineExceeded
	}
}

func client(kit *wattwire.Kit) {
	name, d := procedure(kit), newDialer(kit.Spec)
	keepsConnection := web.KeepsConnections(kit.Spec)
	var kept *rpc.Client
	var mutex sync.Mutex // protects kept
	connection := func(timeout time.Duration) (*rpc.Client, error) {
		if !keepsConnection {
			return d.dial(timeout)
		}
		mutex.Lock()
		defer mutex.Unlock()
		var err error
		if kept == nil {
			kept, err = d.dial(timeout)
		}
		return kept, err
	}
	call := func(message []byte, timeout time.Duration) ([]byte, error) {
		own, err := connection(timeout)
		if err != nil {
			return nil, err
		}
		if !keepsConnection {
			defer own.Close()
		}
		var reply []byte
		switch name {
		case "Calls.Bytes":
			err = called(own, name, message, &reply, timeout)
		case "Calls.Text":
			var text string
			err = called(own, name, string(message), &text, timeout)
			reply = []byte(text)
		default:
			var record Record
			err = called(own, name, toRecord(message), &record, timeout)
			reply = record.bytes()
		}
		return reply, err
	}
	discoveryNs := kit.Probe(call)
	ready(kit, &discoveryNs, d.version)
	kit.Calls(call)
}
