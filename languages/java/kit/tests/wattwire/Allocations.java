package wattwire;

import com.eclipsesource.json.JsonArray;
import com.eclipsesource.json.JsonObject;
import com.sun.management.ThreadMXBean;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Measures the kit's allocations per message for each kind of message, without a middleware; exits
 * with 1 if there are any.
 */
public final class Allocations {
    private static final int MESSAGES = 2000;
    private static final int WARM = 20_000; // messages until the code is compiled
    private static final int NODE = 7;
    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

    private Allocations() {}

    public static void main(String[] arguments) throws Exception {
        List<JsonObject> shapes = new ArrayList<>();
        for (String encoding : List.of("bytes", "text", "record"))
            for (String reply : List.of("echo", "ack", "literal"))
                for (String verify : List.of("header", "full"))
                    shapes.add(shape(encoding, reply, verify, ""));
        shapes.add(shape("bytes", "echo", "full", "a literal"));
        int faults = 0;
        for (JsonObject shape : shapes) {
            Sender.Worker caller = begun(shape, "client").sender().new Worker(0, Allocations::echo);
            faults += fault("call", shape, () -> caller.callOnce());
            faults += fault("request", shape, server(begun(shape, "server"), shape));
        }
        System.out.println(faults + " faults");
        System.exit(faults == 0 ? 0 : 1);
    }

    private static byte[] echo(int worker, byte[] message, long limitNs) {
        return message;
    }

    private static Runnable server(Kit kit, JsonObject shape) throws IOException {
        Payload payload = new Payload(Payload.Shape.of(spec(shape)), List.of((long) NODE));
        byte[] message = payload.newMessage();
        payload.stamp(message, (long) NODE << 48, 1);
        return () -> kit.served(kit.serve(message));
    }

    private static Kit begun(JsonObject shape, String role) throws IOException {
        Kit kit = new Kit(spec(shape.set("role", role)));
        kit.window().begin(Kit.now());
        return kit;
    }

    private static Spec spec(JsonObject json) throws IOException {
        Path path = Files.createTempFile("spec", ".json");
        try {
            Files.writeString(path, json.toString());
            return KeyReader.readSpec(path);
        } finally {
            Files.delete(path);
        }
    }

    private static JsonObject shape(String encoding, String reply, String verify, String literal) {
        JsonObject spec = new JsonObject();
        for (String key :
                List.of(
                        "run",
                        "cell",
                        "role",
                        "tls.authority",
                        "tls.certificate",
                        "tls.key",
                        "security.governance",
                        "security.permissions"))
            spec.add(key, "");
        for (String key :
                List.of(
                        "index",
                        "phase_ns",
                        "count",
                        "count_beyond",
                        "warmup_ns",
                        "spin_ns",
                        "linger_ms",
                        "quiet_ms",
                        "ready_timeout_ms",
                        "action.feedback",
                        "declared.payload_bytes_min",
                        "declared.payload_bytes_max",
                        "declared.record_bytes_max")) spec.add(key, 0);
        for (String key :
                List.of(
                        "roles",
                        "capabilities",
                        "string_settings",
                        "integer_settings",
                        "boolean_settings")) spec.add("declared." + key, new JsonArray());
        return spec.add("contract", Constants.CONTRACT)
                .add("pattern", "service")
                .add("node", NODE)
                .add("peers.nodes", new JsonArray().add(NODE))
                .add("peers.count", 1)
                .add("peers.endpoints", new JsonArray())
                .add("host.address", "127.0.0.1")
                .add("host.interface", "lo")
                .add("peers.addresses", new JsonArray())
                .add("loop", "open")
                .add("period_ns", 1)
                .add("duration_ns", 10 * WARM)
                .add("overrun_ns", 3_600_000_000_000L)
                .add("timeout_ns", 1_000_000_000)
                .add("outstanding_max", 1)
                .add("pacing", "kit")
                .add("payload.bytes", 160)
                .add("payload.encoding", encoding)
                .add("payload.seed", 1)
                .add("payload.literal", literal)
                .add("reply", reply)
                .add("reply.literal", "a reply")
                .add("verify", verify)
                .add("record.capacity", 10 * WARM);
    }

    private static int fault(String what, JsonObject shape, Runnable message) {
        allocated(message, WARM);
        long bytes = Long.MAX_VALUE; // minimum of three, because the compiler may still be active
        for (int trial = 0; trial < 3; trial++) {
            long once = allocated(message, MESSAGES);
            long twice = allocated(message, 2 * MESSAGES);
            bytes = Math.min(bytes, Math.abs(twice - once));
        }
        if (bytes == 0) return 0;
        double perMessage = (double) bytes / MESSAGES;
        String limit = " bytes per message; allowed: 0";
        System.out.println(what + " " + shape + ": " + perMessage + limit);
        return 1;
    }

    private static long allocated(Runnable message, int count) {
        long thread = Thread.currentThread().getId();
        long before = THREADS.getThreadAllocatedBytes(thread);
        for (int i = 0; i < count; i++) message.run();
        return THREADS.getThreadAllocatedBytes(thread) - before;
    }
}
