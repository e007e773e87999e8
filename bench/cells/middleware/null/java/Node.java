import com.eclipsesource.json.JsonObject;

import wattwire.Kit;
import wattwire.Ready;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Map;

/** A node without a middleware: each call is its own reply, and its server is handed requests. */
public final class Node {
    private Node() {}

    public static void main(String[] arguments) throws Exception {
        Kit.run(arguments, Map.of("client", Node::call, "server", Node::serve));
    }

    private static void call(Kit kit) throws Exception {
        ready(kit);
        kit.calls((worker, message, limitNs) -> message);
    }

    /** Hands its kit the requests before READY, when nothing else runs. */
    private static void serve(Kit kit) throws Exception {
        long sender = kit.spec.peersNodes.get(0);
        byte[] template = template(kit);
        byte[][] requests = new byte[(int) kit.spec.settings.integer("arrivals")][];
        for (int counter = 0; counter < requests.length; counter++) {
            long seq = sender << 48 | counter;
            requests[counter] =
                    ByteBuffer.wrap(template.clone())
                            .order(ByteOrder.LITTLE_ENDIAN)
                            .putLong(0, seq)
                            .putLong(8, Kit.now())
                            .putLong(template.length - 8, seq)
                            .array();
        }
        for (byte[] request : requests) kit.served(kit.serve(request));
        ready(kit);
        kit.drain();
    }

    /** The payload of C-19, whose maker in the kit is not public. */
    private static byte[] template(Kit kit) {
        ByteBuffer words = ByteBuffer.allocate((int) kit.spec.payloadBytes);
        words.order(ByteOrder.LITTLE_ENDIAN).position(16);
        for (long state = kit.spec.payloadSeed; words.hasRemaining(); ) {
            state += 0x9E3779B97F4A7C15L;
            long z = (state ^ state >>> 30) * 0xBF58476D1CE4E5B9L;
            z = (z ^ z >>> 27) * 0x94D049BB133111EBL;
            words.putLong(z ^ z >>> 31);
        }
        return words.array();
    }

    private static void ready(Kit kit) {
        kit.ready(
                new Ready(
                        null,
                        null,
                        new Ready.Library("nothing", "1", ""),
                        new JsonObject(),
                        new Ready.Guarantee("best_effort", "none", "drop_newest")));
    }
}
