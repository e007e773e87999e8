// Client HOST PORT WARM CALLS prints calls per second of a loop on net/http, without a kit.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
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
	url := "http://" + net.JoinHostPort(os.Args[1], os.Args[2]) + "/echo"
	warm, err := strconv.Atoi(os.Args[3])
	check(err)
	calls, err := strconv.Atoi(os.Args[4])
	check(err)
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = nil // as the cell, which takes no proxy from the environment
	client := http.Client{Transport: transport, Timeout: 5 * time.Second}
	call := func() {
		response, err := client.Post(url, "text/plain; charset=utf-8", strings.NewReader(text))
		check(err)
		defer response.Body.Close()
		found, err := io.ReadAll(response.Body)
		check(err)
		if response.StatusCode != http.StatusOK || string(found) != text {
			check(fmt.Errorf("%s: %s %q, not %q", url, response.Status, found, text))
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
