package main

import (
	"crypto/tls"
	"errors"
	"net"
	"net/rpc"
	"runtime"

	"wattwire"
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
	must(answering.Register(&Calls{kit}))
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	must(err)
	shown := new(tls.Config)
	if kit.String("tls.authority") != "" {
		pair, err := tls.LoadX509KeyPair(kit.String("tls.certificate"), kit.String("tls.key"))
		must(err)
		shown.Certificates, version = []tls.Certificate{pair}, "TLS 1.2 to TLS 1.3"
	}
	go func() {
		defer wattwire.Guard()
		for {
			conn, err := listener.Accept()
			must(err)
			if prepare(kit, conn) != nil {
				conn.Close() // it has left already
			} else if shown.Certificates != nil {
				go answering.ServeConn(tls.Server(conn, shown))
			} else {
				go answering.ServeConn(conn)
			}
		}
	}()
	endpoints := []string{listener.Addr().String()}
	wattwire.Print("LISTENING", map[string]any{"endpoints": endpoints})
	noDelay.Store(kit.String("settings.tcp_nodelay") != "off") // no connection is there to be asked
	ready(kit, nil, nil, version)
	kit.Drain()
}
