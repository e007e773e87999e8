import wattwire.Kit;

import java.util.Map;

/** TCP node: length-prefixed frames, one connection for each pair of nodes. */
public final class Node {
    private Node() {}

    public static void main(String[] arguments) throws Exception {
        Kit.run(
                arguments,
                Map.of(
                        "publisher",
                        Topic::publish,
                        "subscriber",
                        Topic::subscribe,
                        "client",
                        Service::client,
                        "server",
                        Service::server,
                        "ping",
                        Service::client,
                        "pong",
                        Service::server));
    }
}
