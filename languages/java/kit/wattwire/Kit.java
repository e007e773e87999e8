package wattwire;

import com.eclipsesource.json.JsonArray;
import com.eclipsesource.json.JsonObject;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/** One node of one run, made by `run` for its role; README.md says what a role calls, and when. */
public final class Kit {
    private static final long BEGIN_NS = now();
    private static final long MS_NS = 1_000_000;

    public final Spec spec;
    private final Payload payload;
    private final Window window = new Window();
    private final Results results;
    private final Sender sender;
    private final Receiver receiver;

    /** A role of a node. */
    public interface Role {
        void play(Kit kit) throws Exception;
    }

    /** A call of worker 0, 1, …; returns null at the timeout, and throws if it failed (C-36). */
    public interface Call {
        byte[] call(int worker, byte[] message, long limitNs) throws IOException;
    }

    Kit(Spec spec) {
        this.spec = spec;
        List<Long> arrivingFrom = sends() ? List.of(spec.node) : spec.peersNodes;
        payload = new Payload(Payload.Shape.of(spec), arrivingFrom);
        results = new Results(spec, window, isTopic());
        sender = new Sender(this, payload, results, window);
        receiver = new Receiver(this, payload, results, window);
    }

    /** Runs this process as a node: runs its role, writes the samples and prints DONE. */
    public static void run(String[] arguments, Map<String, Role> roles) throws Exception {
        Thread.setDefaultUncaughtExceptionHandler((thread, error) -> Lines.fail(error));
        if (arguments.length != 4
                || !arguments[0].equals("--spec")
                || !arguments[2].equals("--out"))
            throw KeyReader.refused("--spec", List.of(arguments), "--spec FILE --out DIR");
        Spec spec = KeyReader.readSpec(Path.of(arguments[1]));
        Declaration.check(spec, roles.keySet());
        Kit kit = new Kit(spec);
        new Thread(kit.window::readInput, "wattwire-input").start();
        roles.get(spec.role).play(kit);
        Lines.print("DONE", kit.results.finish(Path.of(arguments[3], "samples.bin")));
        ExitCode.DONE.end();
    }

    /** Returns ns of CLOCK_MONOTONIC, which nanoTime reads on Linux. */
    public static long now() {
        return System.nanoTime();
    }

    boolean isTopic() {
        return spec.pattern.equals("topic");
    }

    private boolean sends() {
        return Constants.SENDING_ROLES.contains(spec.role);
    }

    /** Returns the other side's node if there is only one, else UNKNOWN_PEER. */
    int peer() {
        List<Long> peers = spec.peersNodes;
        return peers.size() == 1 ? peers.get(0).intValue() : Constants.UNKNOWN_PEER;
    }

    /** Returns the maximum number of open calls. */
    public int workers() {
        boolean mayOverlap = sends() && !isTopic() && spec.loop.equals("open");
        return mayOverlap ? (int) spec.outstandingMax : 1;
    }

    /** Prints LISTENING with the address at which this node accepts connections. */
    public void listening(String endpoint) {
        Lines.print("LISTENING", new JsonObject().add("endpoints", new JsonArray().add(endpoint)));
    }

    /** Prints READY. */
    public void ready(Ready ready) {
        JsonObject effective = spec.settings.requested();
        for (JsonObject.Member known : ready.effective())
            effective.set(known.getName(), known.getValue());
        Lines.print("READY", ready.toJson(now() - BEGIN_NS, effective));
    }

    /** Returns the time left of ready_timeout_ms; ends the node if there is none. */
    public long leftToReadyNs(String awaited) {
        long leftNs = BEGIN_NS + spec.readyTimeoutMs * MS_NS - now();
        if (leftNs > 0) return leftNs;
        String reason = "no " + awaited + " within ready_timeout_ms";
        throw new NodeException(ExitCode.MIDDLEWARE_FAILED, null, reason);
    }

    /** Makes calls until a reply arrives (C-07), and returns the elapsed ns. */
    public long probe(Call call) {
        return sender.probe(call);
    }

    /** Runs the schedule, prints SENT and waits for STOP; for topics, `call` sends a message. */
    public void calls(Call call) throws InterruptedException {
        sender.calls(call);
    }

    /** Takes an arriving message. Hand over its reply, if it has one, and then call `served`. */
    public Request serve(byte[] message) {
        return receiver.serve(message);
    }

    /** Records that the reply was handed over, or that a subscriber received its message. */
    public void served(Request request) {
        receiver.served(request);
    }

    /** Blocks until STOP, and then until quiet_ms or linger_ms have passed (C-15). */
    public void drain() throws InterruptedException {
        receiver.drain();
    }

    Window window() {
        return window;
    }

    Sender sender() {
        return sender;
    }
}
