// TCP node: length-prefixed frames, one connection for each pair of nodes.
package main

import "wattwire"

func main() {
	wattwire.Run(wattwire.Cell{
		Roles: map[string]func(*wattwire.Kit){
			"client": call, "server": serve, "ping": call, "pong": serve,
		},
		Settings: []string{
			"tcp_nodelay", "tcp_quickack", "connections", "writes", "receive_buffer_bytes",
			"send_buffer_bytes", "bind_address",
		},
		Capabilities: []string{
			"encoding.bytes", "encoding.text", "pacing.kit", "loop.open", "loop.closed",
			"reply.echo", "reply.ack", "reply.literal", "literal", "async_client",
		},
	})
}
