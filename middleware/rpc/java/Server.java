import static java.nio.charset.StandardCharsets.UTF_8;

import com.eclipsesource.json.JsonObject;
import com.sun.net.httpserver.HttpServer;
import com.sun.net.httpserver.HttpsConfigurator;
import com.sun.net.httpserver.HttpsServer;

import jakarta.jws.WebService;
import jakarta.xml.ws.Endpoint;
import jakarta.xml.ws.WebServiceException;

import wattwire.Kit;
import wattwire.Request;

import web.Cell;
import web.Tls;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

import javax.net.ssl.SSLContext;

/** The procedures' implementation, published on the JDK's HTTP server. */
@WebService(
        endpointInterface = "Calls",
        targetNamespace = Calls.NAMESPACE,
        serviceName = "CallsService")
public class Server implements Calls {
    private final Kit kit;

    Server(Kit kit) {
        this.kit = kit;
    }

    @Override
    public byte[] echoBytes(byte[] data) {
        return reply(data);
    }

    @Override
    public String echo(String data) {
        return new String(reply(data.getBytes(UTF_8)), UTF_8);
    }

    @Override
    public RecordType echoRecord(RecordType data) {
        byte[] message = RecordType.toMessage(data);
        byte[] reply = reply(message);
        return reply == message ? data : RecordType.of(reply);
    }

    private byte[] reply(byte[] message) {
        Request request = kit.serve(message);
        if (request.reply() == null) throw new WebServiceException("message of another run (C-21)");
        kit.served(request); // the return hands the reply over
        return request.reply();
    }

    static void answer(Kit kit) throws Exception {
        Node.prepare(kit);
        // Does the same as Endpoint.publish(address), which does not report the port.
        SSLContext tls = Tls.context(kit);
        var address = new InetSocketAddress(InetAddress.getByName(kit.spec.hostAddress), 0);
        HttpServer server =
                tls == null ? HttpServer.create(address, 0) : HttpsServer.create(address, 0);
        if (server instanceof HttpsServer secure)
            secure.setHttpsConfigurator(new HttpsConfigurator(tls));
        int workers = (int) kit.spec.settings.integer("server_workers");
        ExecutorService pool =
                workers > 0
                        ? Executors.newFixedThreadPool(workers)
                        : Executors.newCachedThreadPool();
        server.setExecutor(pool);
        Endpoint.create(new Server(kit)).publish(server.createContext("/calls"));
        server.start();
        String scheme = tls == null ? "http" : "https";
        int port = server.getAddress().getPort();
        kit.listening(scheme + "://" + kit.spec.hostAddress + ":" + port + "/calls");
        Node.ready(
                kit,
                tls,
                new JsonObject()
                        .add("server", "jdk.httpserver")
                        .add("tcp_nodelay", Boolean.getBoolean("sun.net.httpserver.nodelay"))
                        .add("server_workers", Cell.workers(workers)),
                null);
        kit.drain();
    }
}
