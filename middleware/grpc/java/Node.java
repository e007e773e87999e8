import com.eclipsesource.json.JsonObject;

import io.grpc.internal.GrpcUtil;

import wattwire.Kit;

import web.Cell;
import web.Tls;

/** gRPC node: grpc-java on Netty. */
public final class Node {
    private Node() {}

    public static void main(String[] arguments) throws Exception {
        Cell.run(arguments, Client::ask, Server::answer);
    }

    /** Prints READY; `discoveryNs` is null without probes. */
    static void ready(Kit kit, JsonObject effective, Long discoveryNs) {
        effective.add("tls", Tls.isEnabled(kit) ? "on" : "none").add("transport", "netty");
        String version = GrpcUtil.getGrpcBuildVersion().getImplementationVersion();
        Cell.ready(kit, "grpc-java", version, effective, discoveryNs);
    }
}
