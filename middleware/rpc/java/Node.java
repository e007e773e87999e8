import com.eclipsesource.json.JsonObject;
import com.sun.xml.ws.util.RuntimeVersion;

import wattwire.Kit;
import wattwire.NodeException;

import web.Cell;
import web.Tls;

import java.util.Set;

import javax.net.ssl.SSLContext;

/** RPC node: JAX-WS, SOAP 1.1 over the JDK's HTTP server and HttpURLConnection. */
public final class Node {
    private static final int PAYLOAD_BYTES_MAX = 16_777_216;
    private static final int RECORD_BYTES_MAX = 4_194_304;

    private Node() {}

    public static void main(String[] arguments) throws Exception {
        Cell.run(
                arguments,
                Client::ask,
                Server::answer,
                Set.of("keep_alive", "tcp_nodelay", "tls", "server_workers"),
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

    /** Ends the node with 3 if the libraries do not support the spec; otherwise prepares them. */
    static void prepare(Kit kit) {
        Cell.limit(kit, PAYLOAD_BYTES_MAX, RECORD_BYTES_MAX);
        if (kit.spec.settings.text("tcp_nodelay").equals("off"))
            throw NodeException.unsupported("tcp_nodelay off: HttpURLConnection always sets it");
        // The JDK reads these properties once, when it loads the classes that use them.
        if (kit.spec.settings.text("tcp_nodelay").equals("on"))
            System.setProperty("sun.net.httpserver.nodelay", "true");
        if (kit.spec.settings.text("keep_alive").equals("off"))
            System.setProperty("http.keepAlive", "false");
    }

    /** Prints READY; `discoveryNs` is null without probes. */
    static void ready(Kit kit, SSLContext tls, JsonObject effective, Long discoveryNs) {
        effective.add("tls", Tls.offered(tls));
        String version = RuntimeVersion.VERSION.toString();
        Cell.ready(kit, "JAX-WS RI", version, effective, discoveryNs);
    }
}
