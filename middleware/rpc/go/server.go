package main

import (
	"crypto/tls"
	"errors"
	"net/rpc"
	"runtime"

	"wattwire"
	"wattwire/web"
)

var errAnotherRun = errors.New("the request is of another run")

// Calls implements the procedures. The library sends the value that a procedure writes to reply.
type Calls struct{ kit *wattwire.Kit }

func (c *Calls) serve(request []byte, hand func(reply []byte)) error {
	answered := c.kit.Serve(request, func(reply []byte) error {
		hand(reply)
		return nil
	})
	if !answered {
		return errAnotherRun
	}
	return nil
}

// Bytes answers bytes.
func (c *Calls) Bytes(request []byte, reply *[]byte) error {
	return c.serve(request, func(found []byte) { *reply = found })
}

// Text answers characters.
func (c *Calls) Text(request string, reply *string) error {
	return c.serve([]byte(request), func(found []byte) { *reply = string(found) })
}

// Record answers records.
func (c *Calls) Record(request Record, reply *Record) error {
	return c.serve(request.bytes(), func(found []byte) { *reply = toRecord(found) })
}

func server(kit *wattwire.Kit) {
	procedure(kit)
	if workers := kit.Spec.Settings.Integer("server_workers"); workers > 0 {
		runtime.GOMAXPROCS(int(workers)) // a goroutine answers each request, so many at once
	}
	answering, version := rpc.NewServer(), "none"
	wattwire.Check(answering.Register(&Calls{kit}))
	listener := web.Listen(kit.Spec)
	shown := new(tls.Config)
	if kit.Spec.TLSAuthority != "" {
		pair, err := tls.LoadX509KeyPair(kit.Spec.TLSCertificate, kit.Spec.TLSKey)
		wattwire.Check(err)
		shown.Certificates, version = []tls.Certificate{pair}, "TLS 1.2 to TLS 1.3"
	}
	go func() {
		defer wattwire.Guard()
		for {
			conn, err := listener.Accept()
			wattwire.Check(err)
			if shown.Certificates != nil {
				go answering.ServeConn(tls.Server(conn, shown))
			} else {
				go answering.ServeConn(conn)
			}
		}
	}()
	wattwire.Listening(listener.Addr().String())
	ready(kit, nil, version)
	kit.Drain()
}
