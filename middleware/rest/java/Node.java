import java.util.Set;
import wattwire.Kit;
import web.Cell;

/** REST node: Jersey on Grizzly answers, the JDK's HttpClient asks. */
public final class Node {
    static final int PAYLOAD_BYTES_MAX = 16_777_216;
    static final int RECORD_BYTES_MAX = 4_194_304;

    private Node() {}

    public static void main(String[] arguments) throws Exception {
        Cell.run(arguments, Client::ask, Server::answer,
            Set.of("http_version", "keep_alive", "tcp_nodelay", "tls", "server_workers"),
            Set.of("encoding.bytes", "encoding.text", "encoding.record", "pacing.kit",
                "loop.open", "loop.closed", "reply.echo", "reply.ack", "reply.literal",
                "literal", "async_client"));
    }

    /** Ends the node with 3 where the libraries cannot do what is asked for. */
    static void checkSettings(Kit kit) {
        Cell.limit(kit, PAYLOAD_BYTES_MAX, RECORD_BYTES_MAX);
        if (kit.text("settings.http_version").equals("2"))
            Kit.fail(3, null, "http_version 2: Grizzly speaks it with an extension only");
        if (kit.text("settings.tcp_nodelay").equals("off"))
            Kit.fail(3, null, "tcp_nodelay off: the JDK's HttpClient always has it on");
    }
}
