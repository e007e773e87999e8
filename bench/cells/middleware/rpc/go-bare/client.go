// Client HOST PORT WARM CALLS prints calls per second of a loop on net/rpc, without a kit.
package main

import (
	"fmt"
	"net"
	"net/rpc"
	"os"
	"strconv"
	"time"
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
	client, err := rpc.Dial("tcp", net.JoinHostPort(os.Args[1], os.Args[2]))
	check(err)
	call := func() {
		var reply string
		check(client.Call("Calls.Text", text, &reply))
		if reply != text {
			check(fmt.Errorf("%q, not %q", reply, text))
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
