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

// Calls are the procedures. The library sends what a procedure has put into reply.
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
	if workers := kit.Integer("settings.server_workers"); workers > 0 {
		runtime.GOMAXPROCS(int(workers)) // a goroutine answers each request, so many at once
	}
	answering, version := rpc.NewServer(), "none"
	web.Check(answering.Register(&Calls{kit}))
	listener := web.Listen(kit)
	shown := new(tls.Config)
	if kit.String("tls.authority") != "" {
		pair, err := tls.LoadX509KeyPair(kit.String("tls.certificate"), kit.String("tls.key"))
		web.Check(err)
		shown.Certificates, version = []tls.Certificate{pair}, "TLS 1.2 to TLS 1.3"
	}
	go func() {
		defer wattwire.Guard()
		for {
			conn, err := listener.Accept()
			web.Check(err)
			if shown.Certificates != nil {
				go answering.ServeConn(tls.Server(conn, shown))
			} else {
				go answering.ServeConn(conn)
			}
		}
	}()
	web.Listening(listener.Addr().String())
	ready(kit, nil, nil, version)
	kit.Drain()
}
