import wattwire.Kit;
import wattwire.NodeException;

import web.Cell;

import java.util.Set;

/** REST node: Jersey on Grizzly as server, the JDK's HttpClient as client. */
public final class Node {
    static final int PAYLOAD_BYTES_MAX = 16_777_216;
    static final int RECORD_BYTES_MAX = 4_194_304;

    private Node() {}

    public static void main(String[] arguments) throws Exception {
        Cell.run(
                arguments,
                Client::ask,
                Server::answer,
                Set.of("http_version", "keep_alive", "tcp_nodelay", "tls", "server_workers"),
                Set.of(
                        "encoding.bytes",
                        "encoding.text",
                        "encoding.record",
                        "pacing.kit",
                        "loop.open",
                        "loop.closed",
                        "reply.echo",
                        "reply.ack",
                        "reply.literal",
                        "literal",
                        "async_client"));
    }

    /** Ends the node with 3 if the libraries do not support the spec. */
    static void checkSettings(Kit kit) {
        Cell.limit(kit, PAYLOAD_BYTES_MAX, RECORD_BYTES_MAX);
        if (kit.spec.settings.text("http_version").equals("2"))
            throw NodeException.unsupported(
                    "http_version 2: Grizzly speaks it with an extension only");
        if (kit.spec.settings.text("tcp_nodelay").equals("off"))
            throw NodeException.unsupported(
                    "tcp_nodelay off: the JDK's HttpClient always has it on");
    }
}
