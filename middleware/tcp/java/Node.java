import wattwire.Kit;

import java.util.Map;
import java.util.Set;

/** TCP node: length-prefixed frames, one connection for each pair of nodes. */
public final class Node {
    private Node() {}

    public static void main(String[] arguments) throws Exception {
        Kit.run(
                arguments,
                Map.of(
                        "publisher",
                        Topic::publish,
                        "subscriber",
                        Topic::subscribe,
                        "client",
                        Service::client,
                        "server",
                        Service::server,
                        "ping",
                        Service::client,
                        "pong",
                        Service::server),
                Set.of(
                        "tcp_nodelay",
                        "tcp_quickack",
                        "connections",
                        "writes",
                        "receive_buffer_bytes",
                        "send_buffer_bytes",
                        "bind_address"),
                Set.of(
                        "encoding.bytes",
                        "encoding.text",
                        "pacing.kit",
                        "loop.open",
                        "loop.closed",
                        "reply.echo",
                        "reply.ack",
                        "reply.literal",
                        "literal",
                        "async_client"));
    }
}
