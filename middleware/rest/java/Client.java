import com.eclipsesource.json.JsonObject;

import wattwire.Kit;

import web.Cell;
import web.Tls;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpTimeoutException;
import java.time.Duration;

/** The JDK's HttpClient, one for all workers. */
final class Client {
    private final HttpClient client;
    private final HttpRequest.Builder post;
    private final Bodies bodies;

    private volatile String tls = "none";

    private Client(Kit kit, URI address) throws Exception {
        // By default it offers HTTP/2 in an Upgrade header, and Grizzly reads the body of such a
        // request until the connection ends.
        var builder = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1);
        if (Tls.isEnabled(kit)) builder.sslContext(Tls.context(kit));
        client = builder.build();
        bodies = new Bodies(kit);
        post = HttpRequest.newBuilder(address).header("Content-Type", bodies.type);
        if (kit.spec.settings.text("keep_alive").equals("off")) post.header("Connection", "close");
    }

    static void ask(Kit kit) throws Exception {
        // HttpClient rejects this header unless the property names it before the class is loaded.
        System.setProperty("jdk.httpclient.allowRestrictedHeaders", "connection");
        URI address = URI.create(Cell.endpoint(kit, "an address"));
        Client asking = new Client(kit, address);
        long discoveryNs = kit.probe(asking::call);
        JsonObject effective =
                new JsonObject()
                        .add("tcp_nodelay", true)
                        .add("tls", asking.tls)
                        .add("http_version", "1.1")
                        .add("client", "java.net.http");
        String release = System.getProperty("java.version");
        Cell.ready(kit, "java.net.http", release, effective, discoveryNs);
        kit.calls(asking::call);
    }

    private byte[] call(int worker, byte[] message, long limitNs) throws IOException {
        HttpRequest request =
                post.copy()
                        .timeout(Duration.ofNanos(limitNs))
                        .POST(HttpRequest.BodyPublishers.ofByteArray(bodies.encode(message)))
                        .build();
        try {
            // Not sendAsync, which passes every reply through a thread of a pool.
            HttpResponse<byte[]> response =
                    client.send(request, HttpResponse.BodyHandlers.ofByteArray());
            if (response.sslSession().isPresent()) tls = response.sslSession().get().getProtocol();
            Cell.checkStatus(response.statusCode());
            return bodies.decode(response.body());
        } catch (HttpTimeoutException late) {
            return null;
        } catch (InterruptedException error) {
            throw new IOException(error);
        }
    }
}
