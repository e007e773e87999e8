package wattwire;

import java.io.IOException;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;

/** The messages of publishers, clients and pings. */
final class Sender {
    private static final long PROBE_PAUSE_NS = 5_000_000;
    private static final long PROBE_LIMIT_NS = 100_000_000;
    private final Kit kit;
    private final Spec spec;
    private final Payload payload;
    private final Results results;
    private final Window window;
    private final Schedule schedule;
    private final boolean isTopic;
    private final int peer;

    Sender(Kit kit, Payload payload, Results results, Window window) {
        this.kit = kit;
        this.payload = payload;
        this.results = results;
        this.window = window;
        spec = kit.spec;
        schedule = new Schedule(spec, window);
        isTopic = kit.isTopic();
        peer = kit.peer();
    }

    long probe(Kit.Call call) {
        byte[] message = payload.newMessage();
        long seq = spec.node << 48 | Constants.PROBE_COUNTER;
        String awaited = "reply";
        long beginNs = Kit.now();
        for (int attempt = 1; ; attempt++) {
            long limitNs = Math.min(kit.leftToReadyNs(awaited), attempt * PROBE_LIMIT_NS);
            results.probed();
            payload.stamp(message, seq, Kit.now());
            try {
                if (call.call(0, message, limitNs) != null) return Kit.now() - beginNs;
            } catch (IOException error) {
                awaited = "reply: " + error;
            }
            LockSupport.parkNanos(PROBE_PAUSE_NS);
        }
    }

    void calls(Kit.Call call) throws InterruptedException {
        window.awaitStart();
        List<Thread> others =
                IntStream.range(1, kit.workers())
                        .mapToObj(
                                worker -> new Thread(() -> work(worker, call), "worker-" + worker))
                        .toList();
        others.forEach(Thread::start);
        work(0, call);
        for (Thread other : others) other.join();
        Lines.print("SENT", results.sentFields(schedule.scheduled));
        window.awaitStop();
    }

    private void work(int number, Kit.Call call) {
        Worker worker = new Worker(number, call);
        while (worker.callOnce()) continue;
    }

    /** The state of a thread that makes calls. */
    final class Worker {
        private final int number;
        private final Kit.Call call;
        private final byte[] message = payload.newMessage();
        private final Sample sample = new Sample();
        private final Request scratch = new Request();

        Worker(int number, Kit.Call call) {
            this.number = number;
            this.call = call;
            sample.bytes = message.length;
            sample.peer = peer;
        }

        /** Makes the next call of the schedule, or returns false if there is none. */
        boolean callOnce() {
            if (!schedule.await(sample, spec.node << 48)) return false;
            payload.stamp(message, sample.seq, sample.beginNs);
            byte[] reply = null;
            sample.flags = 0;
            try {
                reply = call.call(number, message, spec.timeoutNs);
            } catch (IOException error) {
                sample.flags = Constants.FAILED;
            }
            sample.endNs = Kit.now();
            if (isTopic) {
                results.published(sample);
                return true;
            }
            if (sample.flags == 0) sample.flags = flagsOf(reply);
            results.called(sample);
            return true;
        }

        private int flagsOf(byte[] reply) {
            boolean isLate = sample.endNs - sample.beginNs > spec.timeoutNs;
            if (reply == null || isLate) return Constants.TIMEOUT;
            return payload.isReply(reply, message, scratch) ? 0 : Constants.CORRUPT;
        }
    }
}
