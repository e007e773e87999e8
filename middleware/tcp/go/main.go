// TCP node: length-prefixed frames, one connection for each pair of nodes.
package main

import "wattwire"

func main() {
	wattwire.Run(wattwire.Roles{"client": call, "server": serve, "ping": call, "pong": serve})
}
