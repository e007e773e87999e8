// Client HOST PORT WARM CALLS prints calls per second of a loop on a grpc-go stub, without a kit.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"node/pb"
)

const text = "Hello World"

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	warm, err := strconv.Atoi(os.Args[3])
	check(err)
	calls, err := strconv.Atoi(os.Args[4])
	check(err)
	channel, err := grpc.NewClient(net.JoinHostPort(os.Args[1], os.Args[2]),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithNoProxy()) // as the cell, which takes no proxy from the environment
	check(err)
	defer channel.Close()
	stub := pb.NewCallsClient(channel)
	call := func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		reply, err := stub.Text(ctx, &pb.TextPayload{Data: text})
		check(err)
		if reply.GetData() != text {
			check(fmt.Errorf("%q, not %q", reply.GetData(), text))
		}
	}
	call()
	fmt.Println("begun")
	for range warm {
		call()
	}
	start := time.Now()
	fmt.Println("warm")
	for range calls {
		call()
	}
	fmt.Println(float64(calls) / time.Since(start).Seconds())
}
