package wattwire;

import com.eclipsesource.json.*;
import java.io.*;
import java.nio.ByteBuffer;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;

/** One node of one run, made by `run` for its role; README.md says what a role calls, and when. */
public final class Kit {
    public static final long BEGIN_NS = now();
    private static final long NEVER = Long.MAX_VALUE, NAP_NS = 100_000_000, PROBE = (1L << 48) - 1;
    private static final int WARM_UP = 1, FAILED = 2, TIMEOUT = 4;
    static final List<String> ROLES = List.of("publisher", "subscriber", "server", "client",
        "action_server", "action_client", "ping", "pong"); // in the order of C-24
    private static final String[][] KEYS = { // and how their values look in JSON
        {"contract", "2"}, {"peers.nodes", "\\[([0-9]+,?)*\\]"},
        {"peers.endpoints", "\\[(\".*\")?\\]"},
        {"run cell pattern role loop pacing payload.encoding payload.literal reply reply.literal"
            + " verify tls.authority tls.certificate tls.key", "(?s)\".*\""},
        {"node index peers.count period_ns phase_ns duration_ns count count_beyond"
            + " warmup_ns overrun_ns timeout_ns outstanding_max quiet_ms linger_ms spin_ns"
            + " ready_timeout_ms payload.bytes payload.seed action.feedback record.capacity",
            "-?[0-9]{1,18}"}};
    public final JsonObject spec;
    private final Payload payload;
    private final ByteBuffer samples; // a header of 64 bytes, then 40 for each
    private final boolean sends, topic, closed;
    private final long node, scheduled;
    private final int peer, workers;
    byte kind; // of C-25: message or call
    private final Object schedule = new Object();
    private long next;
    private volatile long startNs = NEVER, stopNs = NEVER, warmUntilNs = NEVER, arrivalNs;
    private long firstNs = NEVER, lastNs, sent, received, foreign, corrupt, probes, overflow;

    public interface Role { void play(Kit kit) throws Exception; }
    /** A call of worker 0, 1, …: its reply, null at the timeout; throws where it was not sent. */
    public interface Call { byte[] call(int worker, byte[] message, long ns) throws IOException; }

    /** A message in hand; `reply` is null where it is not to be answered. */
    public record Request(int verdict, long seq, long sendNs, long atNs, int bytes, byte[] reply) {}

    Kit(JsonObject spec) {
        this.spec = spec;
        sends = List.of("publisher", "client", "ping").contains(text("role"));
        topic = text("pattern").equals("topic");
        kind = (byte) (topic ? 0 : 1);
        closed = text("loop").equals("closed");
        workers = !sends || topic || closed ? 1 : (int) number("outstanding_max");
        node = number("node");
        List<JsonValue> peers = spec.get("peers.nodes").asArray().values();
        peer = peers.size() == 1 ? peers.get(0).asInt() : 65535;
        payload = new Payload(spec, sends ? List.of(spec.get("node")) : peers);
        samples = Payload.ordered(new byte[64 + 40 * (int) number("record.capacity")]).position(64);
        long lastNs = number("duration_ns") - number("phase_ns") - 1;
        scheduled = closed ? number("count")
            : Math.max(0, Math.floorDiv(lastNs, number("period_ns")) + 1);
    }

    /** CLOCK_MONOTONIC in ns: what nanoTime reads on Linux. */
    public static long now() { return System.nanoTime(); }
    public String text(String key) { return spec.get(key).asString(); }
    /** A number in the unit that its key names. */
    public long number(String key) { return spec.get(key).asLong(); }

    /** Runs the node: its role, then its samples and DONE. */
    public static void run(String[] arguments, Map<String, Role> roles, Set<String> settings,
        Set<String> capabilities) throws Exception {
        Thread.setDefaultUncaughtExceptionHandler((thread, error) -> {
            error.printStackTrace();
            fail(4, null, error.toString());
        });
        if (arguments.length != 4 || !(arguments[0] + arguments[2]).equals("--spec--out"))
            fail(2, "--spec", "allowed: --spec FILE --out DIR and nothing else");
        String fault = fault(arguments[1], settings);
        if (fault != null) fail(2, fault.split(": ")[0], fault);
        Kit kit = new Kit(Json.parse(Files.readString(Path.of(arguments[1]))).asObject());
        kit.require(roles, capabilities);
        new Thread(kit::listen, "wattwire-input").start();
        roles.get(kit.text("role")).play(kit);
        line("DONE", kit.finish(arguments[3] + "/samples.bin"));
        Runtime.getRuntime().halt(0);
    }

    /** What of a specification would be misread (C-02), or null; the rest is the harness's. */
    static String fault(String path, Set<String> settings) {
        try {
            JsonObject spec = Json.parse(Files.readString(Path.of(path))).asObject();
            for (String[] keys : KEYS)
                for (String key : keys[0].split(" "))
                    if (!String.valueOf(spec.get(key)).matches(keys[1]))
                        return key + ": found " + spec.get(key) + "; allowed: " + keys[1];
            for (String key : spec.names())
                if (key.startsWith("settings.") && !settings.contains(key.substring(9)))
                    return key + ": allowed: only the settings " + settings;
            return null;
        } catch (Exception error) {
            return "--spec: " + path + ": allowed: a JSON object; found: " + error;
        }
    }

    /** Refuses what the cell cannot do (C-03). */
    private void require(Map<String, Role> roles, Set<String> capabilities) {
        List<String> wanted = new ArrayList<>(List.of("encoding." + text("payload.encoding"),
            "loop." + text("loop"), "pacing." + text("pacing")));
        if (!topic) wanted.add("reply." + text("reply"));
        if (payload.literal) wanted.add("literal");
        if (workers > 1) wanted.add("async_client");
        wanted.removeAll(capabilities);
        if (!roles.containsKey(text("role"))) wanted.add("role " + text("role"));
        if (payload.tooShort) wanted.add("payloads of less than 16 bytes, 32 characters");
        if (!wanted.isEmpty()) fail(3, null, "this cell does not have " + wanted);
    }

    /** Tells the harness; Java can open descriptor 3 (C-05) by this name only. */
    public static synchronized void line(String keyword, JsonObject fields) {
        try (OutputStream lines = new FileOutputStream("/proc/self/fd/3", true)) {
            lines.write((keyword + " " + fields + "\n").getBytes("UTF-8"));
        } catch (IOException error) {
            System.err.println("descriptor 3: " + error + ": " + fields);
            Runtime.getRuntime().halt(4);
        }
    }

    /** Ends the node: 2 a bad specification (and its key), 3 beyond the cell, 4 all else. */
    public static void fail(int code, String key, String reason) {
        line("ERROR", new JsonObject().add("code", code).add("key", key).add("reason", reason));
        Runtime.getRuntime().halt(code);
    }

    private void listen() {
        Scanner input = new Scanner(System.in);
        while (input.hasNextLine()) obey(input.nextLine());
        Runtime.getRuntime().halt(5);
    }

    private synchronized void obey(String line) {
        boolean go = line.matches("GO [0-9]{1,18}");
        if (go) startNs = Long.parseLong(line.substring(3));
        if (go) warmUntilNs = startNs + number("warmup_ns");
        else stopNs = Math.min(stopNs, now());
        if (go ? startNs < now() : !line.equals("STOP"))
            fail(2, "GO", line + ": allowed: STOP, GO and a time after " + now());
        notifyAll();
    }

    private synchronized void awaitStop(boolean orGo) throws InterruptedException {
        while (stopNs == NEVER && !(orGo && startNs != NEVER)) wait();
    }

    /** What is left of ready_timeout_ms; ends the node where nothing is. */
    public long leftToReadyNs(String awaited) {
        long leftNs = BEGIN_NS + number("ready_timeout_ms") * 1_000_000 - now();
        if (leftNs <= 0) fail(4, null, "no " + awaited + " within ready_timeout_ms");
        return leftNs;
    }

    /** Calls until a reply comes (C-07); the ns it took. */
    public long probe(Call call) {
        byte[] message = payload.template.clone();
        String awaited = "reply";
        for (long beginNs = now(); ; LockSupport.parkNanos(5_000_000)) {
            long limitNs = Math.min(leftToReadyNs(awaited), ++probes * NAP_NS);
            payload.stamp(message, node << 48 | PROBE, now());
            try {
                if (call.call(0, message, limitNs) != null) return now() - beginNs;
            } catch (IOException error) {
                awaited = "reply: " + error; // it is not there yet
            }
        }
    }

    /** The whole schedule, SENT, and until STOP; of topics, `call` is the sending. */
    public void calls(Call call) throws Exception {
        awaitStop(true);
        List<Thread> others = IntStream.range(1, workers)
            .mapToObj(worker -> new Thread(() -> work(worker, call), "worker-" + worker)).toList();
        others.forEach(Thread::start);
        work(0, call);
        for (Thread other : others) other.join();
        line("SENT", new JsonObject().add("sent", sent).add("scheduled", scheduled)
            .add("begin_ns", lastNs == 0 ? Json.NULL : Json.value(firstNs))
            .add("end_ns", lastNs == 0 ? Json.NULL : Json.value(lastNs)).add("skipped", 0));
        awaitStop(false);
    }

    private void work(int worker, Call call) {
        byte[] message = payload.template.clone();
        long timeoutNs = number("timeout_ns"), spinNs = number("spin_ns");
        long periodNs = number("period_ns"), phaseNs = number("phase_ns");
        long latestNs = closed ? NEVER : startNs + number("duration_ns") + number("overrun_ns");
        long mostCalls = scheduled + number("count_beyond");
        while (true) {
            long k, dueNs, beginNs;
            synchronized (schedule) { // a slot is taken when it is due: STOP leaves no gap (C-17)
                k = next;
                dueNs = closed ? startNs : startNs + phaseNs + k * periodNs;
                boolean more = k < mostCalls;
                for (long leftNs; more && (leftNs = dueNs - now()) > 0 && stopNs == NEVER; )
                    if (leftNs > spinNs) LockSupport.parkNanos(Math.min(leftNs - spinNs, NAP_NS));
                beginNs = now();
                if (!more || stopNs != NEVER || beginNs > latestNs) return;
                if (k == scheduled) line("COUNTED", new JsonObject());
                next++;
            }
            payload.stamp(message, node << 48 | k, beginNs);
            byte[] reply = null;
            int flags = 0;
            try {
                reply = call.call(worker, message, timeoutNs);
            } catch (IOException error) {
                flags = FAILED;
            }
            long endNs = now();
            boolean inTime = !topic && reply != null && endNs - beginNs <= timeoutNs;
            if (inTime) flags = payload.isDue(reply, message) ? 0 : Payload.CORRUPT;
            else if (!topic && flags == 0) flags = TIMEOUT;
            synchronized (this) {
                firstNs = Math.min(firstNs, beginNs);
                lastNs = Math.max(lastNs, endNs);
                sent += flags == FAILED && topic ? 0 : 1;
                received += inTime ? 1 : 0;
                corrupt += flags == Payload.CORRUPT ? 1 : 0;
                long intendedNs = closed ? beginNs : dueNs;
                long knownNs = topic || inTime ? endNs : Payload.UNKNOWN_NS;
                flags |= intendedNs < warmUntilNs ? WARM_UP : 0;
                add(node << 48 | k, intendedNs, beginNs, knownNs, message.length, peer, flags);
            }
        }
    }

    /** One sample (C-25). */
    synchronized void add(long seq, long intendedNs, long beginNs, long endNs, int bytes, int from,
        int flags) {
        if (samples.remaining() < 40) overflow++;
        else samples.putLong(seq).putLong(intendedNs).putLong(beginNs).putLong(endNs).putInt(bytes)
            .putShort((short) from).put(kind).put((byte) flags);
    }

    /** A message in hand: its reply, if any, is to be handed over, and then to be `served`. */
    public Request serve(byte[] message) {
        long nowNs = now();
        Payload.Arrival found = payload.check(message);
        boolean foreign = found.verdict() == Payload.FOREIGN;
        boolean readable = payload.literal || found.seq() != Payload.NO_SEQ;
        long seq = found.seq();
        synchronized (this) {
            // Of a literal, nothing but probes comes before the start (C-17).
            if (payload.literal) seq = (long) peer << 48 | (nowNs < startNs ? PROBE : received);
            boolean probe = readable && (seq & PROBE) == PROBE;
            if (foreign) this.foreign++;
            else if (probe) probes++;
            else arrivalNs = nowNs;
            corrupt += !probe && found.verdict() == Payload.CORRUPT ? 1 : 0;
            received += !probe && !foreign && readable ? 1 : 0;
        }
        byte[] reply = foreign || payload.record && !readable ? null : payload.reply(message);
        return new Request(found.verdict(), seq, found.sendNs(), nowNs, message.length, reply);
    }

    /** The reply was handed over; or a subscriber has its message. */
    public void served(Request in) {
        if (in.verdict == Payload.FOREIGN || (in.seq & PROBE) == PROBE) return;
        long beginNs = topic ? in.sendNs : in.atNs, endNs = topic ? in.atNs : now();
        int flags = in.verdict | (endNs < warmUntilNs ? WARM_UP : 0); // a verdict is a flag, too
        add(in.seq, Payload.UNKNOWN_NS, beginNs, endNs, in.bytes, (int) (in.seq >>> 48), flags);
    }

    /** Blocks a server or subscriber until STOP and then quiet_ms, or linger_ms (C-15). */
    public void drain() throws InterruptedException {
        awaitStop(false);
        long quietNs = number("quiet_ms") * 1_000_000, lingerNs = number("linger_ms") * 1_000_000;
        while (now() < Math.min(stopNs + lingerNs, Math.max(arrivalNs, stopNs) + quietNs))
            Thread.sleep(5);
    }

    /** Writes the sample file (C-24); the fields of DONE. */
    synchronized JsonObject finish(String path) throws IOException {
        int recorded = samples.position() / 40 - 1;
        samples.put(0, "WATTWIRE".getBytes()).putShort(8, (short) 1).putShort(10, (short) 64)
            .putShort(12, (short) 40).put(14, (byte) ROLES.indexOf(text("role"))).put(15, (byte) 1)
            .putShort(16, (short) node).putLong(24, recorded).putLong(32, overflow)
            .putLong(40, number("payload.seed"));
        Files.write(Path.of(path), Arrays.copyOf(samples.array(), samples.position()));
        return new JsonObject().add("sent", sent).add("received", received)
            .add("recorded", recorded).add("overflow", overflow).add("foreign", foreign)
            .add("corrupt", corrupt).add("probes", probes);
    }
}
