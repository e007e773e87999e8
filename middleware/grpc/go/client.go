package main

import (
	"context"
	"crypto/tls"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"node/pb"
	"wattwire"
	"wattwire/web"
)

// called calls one of the methods.
func called(ctx context.Context, stub pb.CallsClient, name string, message []byte,
	options ...grpc.CallOption) ([]byte, error) {
	switch name {
	case "bytes":
		reply, err := stub.Bytes(ctx, &pb.BytesPayload{Data: message}, options...)
		return reply.GetData(), err
	case "text":
		reply, err := stub.Text(ctx, &pb.TextPayload{Data: string(message)}, options...)
		return []byte(reply.GetData()), err
	}
	reply, err := stub.Record(ctx, toRecord(message), options...)
	if err != nil {
		return nil, err
	}
	return toBytes(reply), nil
}

// credential trusts only the run's authority, or uses no TLS.
func credential(spec *wattwire.Spec) credentials.TransportCredentials {
	if spec.TLSAuthority == "" {
		return insecure.NewCredentials()
	}
	found, err := credentials.NewClientTLSFromFile(spec.TLSAuthority, "")
	wattwire.Check(err)
	return found
}

func client(kit *wattwire.Kit) {
	name, trust := method(kit), credential(kit.Spec)
	endpoint := web.Endpoint(kit.Spec, "HOST:PORT")
	channel := func() *grpc.ClientConn {
		opened, err := grpc.NewClient(endpoint, grpc.WithTransportCredentials(trust),
			grpc.WithNoProxy()) // ignores the environment (C-01)
		wattwire.Check(err)
		return opened
	}
	kept, once := channel(), !web.KeepsConnections(kit.Spec)
	version, far := "none", peer.Peer{}
	call := func(message []byte, timeout time.Duration, options ...grpc.CallOption) ([]byte, error) {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		own := kept
		if once {
			own = channel()
			defer own.Close()
		}
		reply, err := called(ctx, pb.NewCallsClient(own), name, message, options...)
		if status.Code(err) == codes.DeadlineExceeded {
			return nil, os.ErrDeadlineExceeded
		}
		return reply, err
	}
	discoveryNs := kit.Probe(func(message []byte, timeout time.Duration) ([]byte, error) {
		return call(message, timeout, grpc.Peer(&far))
	})
	if info, secure := far.AuthInfo.(credentials.TLSInfo); secure {
		version = tls.VersionName(info.State.Version)
	}
	ready(kit, &discoveryNs, version)
	kit.Calls(func(message []byte, timeout time.Duration) ([]byte, error) {
		return call(message, timeout)
	})
}
