import com.eclipsesource.json.JsonObject;

import jakarta.ws.rs.POST;
import jakarta.ws.rs.Path;
import jakarta.ws.rs.core.Response;

import org.glassfish.grizzly.Grizzly;
import org.glassfish.grizzly.http.server.HttpServer;
import org.glassfish.grizzly.http.server.NetworkListener;
import org.glassfish.grizzly.nio.transport.TCPNIOTransport;
import org.glassfish.grizzly.ssl.SSLEngineConfigurator;
import org.glassfish.grizzly.threadpool.ThreadPoolConfig;
import org.glassfish.jersey.grizzly2.httpserver.GrizzlyHttpServerFactory;
import org.glassfish.jersey.internal.Version;
import org.glassfish.jersey.server.ResourceConfig;

import wattwire.Kit;
import wattwire.Payload;
import wattwire.Request;

import web.Cell;
import web.Tls;

import java.net.URI;

import javax.net.ssl.SSLContext;

/** A Jersey resource in a Grizzly server. */
@Path("echo")
public final class Server {
    private final Kit kit;
    private final Bodies bodies;

    private Server(Kit kit) {
        this.kit = kit;
        bodies = new Bodies(kit);
    }

    @POST
    public Response echo(byte[] body) {
        byte[] message = bodies.decode(body);
        Request request = kit.serve(message);
        if (request.reply() == null)
            return Response.status(message == Payload.UNREADABLE ? 400 : 409).build();
        // Grizzly may keep a reference to bytes that the kit overwrites for the next request.
        byte[] reply = message == request.reply() ? body : bodies.encode(request.reply().clone());
        Response response = Response.ok(reply, bodies.type).build();
        kit.served(request);
        return response;
    }

    static void answer(Kit kit) throws Exception {
        SSLContext tls = Tls.context(kit);
        String scheme = tls == null ? "http" : "https";
        URI address = URI.create(scheme + "://" + kit.spec.hostAddress + ":0/");
        ResourceConfig resources = new ResourceConfig().register(new Server(kit));
        HttpServer server =
                tls == null
                        ? GrizzlyHttpServerFactory.createHttpServer(address, resources, false)
                        : GrizzlyHttpServerFactory.createHttpServer(
                                address,
                                resources,
                                true,
                                new SSLEngineConfigurator(tls, false, false, false),
                                false);
        NetworkListener listener = server.getListeners().iterator().next();
        TCPNIOTransport transport = listener.getTransport();
        ThreadPoolConfig pool = transport.getWorkerThreadPoolConfig();
        int workers = (int) kit.spec.settings.integer("server_workers");
        if (workers > 0 && pool == null) pool = ThreadPoolConfig.defaultConfig().copy();
        if (workers > 0)
            transport.setWorkerThreadPoolConfig(
                    pool.setCorePoolSize(1).setMaxPoolSize(workers).setCorePoolSize(workers));
        server.start();
        kit.listening(scheme + "://" + kit.spec.hostAddress + ":" + listener.getPort() + "/echo");
        JsonObject effective =
                new JsonObject()
                        .add("tcp_nodelay", transport.isTcpNoDelay())
                        .add("http_version", "1.1")
                        .add("tls", Tls.offered(tls))
                        .add("server", "Grizzly " + Grizzly.getDotedVersion())
                        .add(
                                "server_workers",
                                transport.getWorkerThreadPoolConfig().getMaxPoolSize());
        Cell.ready(kit, "jersey-grizzly2-http", Version.getVersion(), effective, null);
        kit.drain();
        server.shutdownNow();
    }
}
