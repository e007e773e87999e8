package main

import (
	"context"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"node/pb"
	"wattwire"
)

// calls implements the methods. The library sends the value that a method returns.
type calls struct {
	pb.UnimplementedCallsServer
	kit *wattwire.Kit
}

func (c *calls) serve(request []byte) (reply []byte, err error) {
	answered := c.kit.Serve(request, func(found []byte) error {
		reply = found
		return nil
	})
	if !answered {
		err = status.Error(codes.FailedPrecondition, "the request is of another run")
	}
	return reply, err
}

func (c *calls) Bytes(_ context.Context, m *pb.BytesPayload) (*pb.BytesPayload, error) {
	reply, err := c.serve(m.GetData())
	return &pb.BytesPayload{Data: reply}, err
}

func (c *calls) Text(_ context.Context, m *pb.TextPayload) (*pb.TextPayload, error) {
	reply, err := c.serve([]byte(m.GetData()))
	return &pb.TextPayload{Data: string(reply)}, err
}

func (c *calls) Record(_ context.Context, m *pb.RecordPayload) (*pb.RecordPayload, error) {
	reply, err := c.serve(toBytes(m))
	if err != nil {
		return nil, err
	}
	return toRecord(reply), nil
}

func server(kit *wattwire.Kit) {
	method(kit)
	var options []grpc.ServerOption
	version := "none"
	if kit.Spec.TLSAuthority != "" {
		shown, err := credentials.NewServerTLSFromFile(kit.Spec.TLSCertificate,
			kit.Spec.TLSKey)
		wattwire.Check(err)
		options, version = append(options, grpc.Creds(shown)), "TLS 1.2 to TLS 1.3"
	}
	if workers := kit.Spec.Settings.Integer("server_workers"); workers > 0 {
		options = append(options, grpc.NumStreamWorkers(uint32(workers)))
	}
	answering := grpc.NewServer(options...)
	pb.RegisterCallsServer(answering, &calls{kit: kit})
	listener, err := net.Listen("tcp4", net.JoinHostPort(kit.Spec.HostAddress, "0"))
	wattwire.Check(err)
	go func() {
		defer wattwire.Guard()
		wattwire.Check(answering.Serve(listener))
	}()
	wattwire.Listening(listener.Addr().String())
	ready(kit, nil, version)
	kit.Drain()
	answering.Stop()
}
