import com.eclipsesource.json.Json;
import com.eclipsesource.json.JsonObject;
import com.eclipsesource.json.JsonValue;
import io.grpc.internal.GrpcUtil;
import java.util.Map;
import java.util.Set;
import wattwire.Kit;

/** gRPC node: grpc-java on Netty. */
public final class Node {
    private static final int PAYLOAD_BYTES_MAX = 4_000_000;
    private static final int RECORD_BYTES_MAX = 3_000_000;

    private Node() {}

    public static void main(String[] arguments) throws Exception {
        Kit.run(arguments,
            Map.of("client", Client::ask, "server", Server::answer,
                "ping", Client::ask, "pong", Server::answer),
            Set.of("keep_alive", "tls", "server_workers"),
            Set.of("encoding.bytes", "encoding.text", "encoding.record", "pacing.kit",
                "loop.open", "loop.closed", "reply.echo", "reply.ack", "reply.literal",
                "literal", "async_client"));
    }

    /** Ends the node with 3 where this cell cannot do what is asked for. */
    static void checkSettings(Kit kit) {
        boolean record = kit.text("payload.encoding").equals("record");
        if (kit.number("payload.bytes") > (record ? RECORD_BYTES_MAX : PAYLOAD_BYTES_MAX))
            Kit.fail(3, null, "payload.bytes is more than this middleware carries");
        if (kit.spec.getBoolean("settings.tls", false))
            Kit.fail(3, null, "tls: this cell has none");
    }

    /** READY; `discoveryNs` is null in JSON where nothing was probed. */
    static void ready(Kit kit, JsonObject effective, JsonValue discoveryNs) {
        String kept = kit.text("settings.keep_alive");
        effective.add("keep_alive", kept.equals("default") ? "on" : kept).add("tls", "none")
            .add("transport", "netty");
        Kit.line("READY", new JsonObject().add("startup_ns", Kit.now() - Kit.BEGIN_NS)
            .add("matched", Json.NULL).add("discovery_ns", discoveryNs)
            .add("library", new JsonObject().add("name", "grpc-java")
                .add("version", GrpcUtil.getGrpcBuildVersion().getImplementationVersion())
                .add("build", System.getProperty("java.vm.version")))
            .add("effective", effective)
            .add("guarantee", new JsonObject().add("delivery", "reliable")
                .add("ordering", "none").add("overload", "block")));
    }
}
