import com.eclipsesource.json.JsonObject;
import com.sun.xml.ws.util.RuntimeVersion;

import wattwire.Kit;

import web.Cell;
import web.Tls;

import javax.net.ssl.SSLContext;

/** RPC node: JAX-WS, SOAP 1.1 over the JDK's HTTP server and HttpURLConnection. */
public final class Node {
    private Node() {}

    public static void main(String[] arguments) throws Exception {
        Cell.run(arguments, Client::ask, Server::answer);
    }

    /** Configures the JDK, which reads these properties when it loads the classes that use them. */
    static void prepare(Kit kit) {
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
