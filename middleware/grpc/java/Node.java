import com.eclipsesource.json.JsonObject;

import io.grpc.internal.GrpcUtil;

import wattwire.Kit;

import web.Cell;
import web.Tls;

import java.util.Set;

/** gRPC node: grpc-java on Netty. */
public final class Node {
    private static final int PAYLOAD_BYTES_MAX = 4_000_000;
    private static final int RECORD_BYTES_MAX = 3_000_000;

    private Node() {}

    public static void main(String[] arguments) throws Exception {
        Cell.run(
                arguments,
                Client::ask,
                Server::answer,
                Set.of("keep_alive", "tls", "server_workers"),
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

    /** Ends the node with 3 if this cell does not support the spec. */
    static void checkSettings(Kit kit) {
        Cell.limit(kit, PAYLOAD_BYTES_MAX, RECORD_BYTES_MAX);
    }

    /** Prints READY; `discoveryNs` is null without probes. */
    static void ready(Kit kit, JsonObject effective, Long discoveryNs) {
        effective.add("tls", Tls.isEnabled(kit) ? "on" : "none").add("transport", "netty");
        String version = GrpcUtil.getGrpcBuildVersion().getImplementationVersion();
        Cell.ready(kit, "grpc-java", version, effective, discoveryNs);
    }
}
