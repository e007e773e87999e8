import com.eclipsesource.json.Json;
import com.eclipsesource.json.JsonObject;
import com.eclipsesource.json.JsonValue;
import com.sun.xml.ws.util.RuntimeVersion;
import java.util.Map;
import java.util.Set;
import wattwire.Kit;

/** RPC node: JAX-WS, SOAP 1.1 over the JDK's HTTP server and HttpURLConnection. */
public final class Node {
    private static final int PAYLOAD_BYTES_MAX = 16_777_216;
    private static final int RECORD_BYTES_MAX = 4_194_304;

    private Node() {}

    public static void main(String[] arguments) throws Exception {
        Kit.run(arguments,
            Map.of("client", Client::ask, "server", Server::answer,
                "ping", Client::ask, "pong", Server::answer),
            Set.of("keep_alive", "tcp_nodelay", "tls", "server_workers"),
            Set.of("encoding.bytes", "encoding.text", "encoding.record", "pacing.kit",
                "loop.open", "loop.closed", "reply.echo", "reply.ack", "reply.literal",
                "literal", "async_client"));
    }

    /** Ends the node with 3 where the libraries cannot do what is asked for; else prepares them. */
    static void prepare(Kit kit) {
        boolean record = kit.text("payload.encoding").equals("record");
        if (kit.number("payload.bytes") > (record ? RECORD_BYTES_MAX : PAYLOAD_BYTES_MAX))
            Kit.fail(3, null, "payload.bytes is more than this middleware carries");
        if (kit.text("settings.tcp_nodelay").equals("off"))
            Kit.fail(3, null, "tcp_nodelay off: HttpURLConnection always has it on");
        if (kit.spec.getBoolean("settings.tls", false))
            Kit.fail(3, null, "tls: this cell has none");
        // The JDK reads these once, when the classes that they are for are loaded.
        if (kit.text("settings.tcp_nodelay").equals("on"))
            System.setProperty("sun.net.httpserver.nodelay", "true");
        if (kit.text("settings.keep_alive").equals("off"))
            System.setProperty("http.keepAlive", "false");
    }

    /** READY; `discoveryNs` is null in JSON where nothing was probed. */
    static void ready(Kit kit, JsonObject effective, JsonValue discoveryNs) {
        String kept = kit.text("settings.keep_alive");
        effective.add("keep_alive", kept.equals("default") ? "on" : kept).add("tls", "none");
        Kit.line("READY", new JsonObject().add("startup_ns", Kit.now() - Kit.BEGIN_NS)
            .add("matched", Json.NULL).add("discovery_ns", discoveryNs)
            .add("library", new JsonObject().add("name", "JAX-WS RI")
                .add("version", RuntimeVersion.VERSION.toString())
                .add("build", System.getProperty("java.vm.version")))
            .add("effective", effective)
            .add("guarantee", new JsonObject().add("delivery", "reliable")
                .add("ordering", "none").add("overload", "block")));
    }
}
