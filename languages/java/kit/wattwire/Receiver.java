package wattwire;

import wattwire.Request.Verdict;

/** The arrivals of subscribers, servers and pongs. */
final class Receiver {
    private static final long MS_NS = 1_000_000;
    private final Spec spec;
    private final Payload payload;
    private final Results results;
    private final Window window;
    private final boolean isTopic;
    private final long literalSeq; // sequence of the first literal, because literals carry none
    private final ThreadLocal<Request> requests = ThreadLocal.withInitial(Request::new);
    private volatile long lastArrivalNs;

    Receiver(Kit kit, Payload payload, Results results, Window window) {
        this.payload = payload;
        this.results = results;
        this.window = window;
        spec = kit.spec;
        isTopic = kit.isTopic();
        literalSeq = (long) kit.peer() << 48;
    }

    Request serve(byte[] message) {
        long nowNs = Kit.now();
        Request request = requests.get();
        payload.check(message, request);
        request.sample.beginNs = nowNs;
        request.sample.bytes = message.length;
        request.reply = null;
        request.isRecorded = false;
        if (request.verdict == Verdict.FOREIGN) results.foreign();
        else if (isProbe(request)) results.probed();
        else note(request);
        if (request.verdict != Verdict.FOREIGN && message != Payload.UNREADABLE)
            request.reply = payload.reply(message, request);
        return request;
    }

    /** Returns whether the request is a probe; before the start, every literal is (C-17). */
    private boolean isProbe(Request request) {
        if (payload.isLiteral) return request.sample.beginNs < window.startNs();
        long counter = request.sample.seq & Constants.PROBE_COUNTER;
        return request.hasSeq && counter == Constants.PROBE_COUNTER;
    }

    private void note(Request request) {
        lastArrivalNs = request.sample.beginNs;
        boolean isCorrupt = request.verdict == Verdict.CORRUPT;
        request.isRecorded = request.hasSeq || payload.isLiteral;
        long before = results.arrived(request.isRecorded, isCorrupt);
        if (payload.isLiteral) request.sample.seq = literalSeq | before;
        request.sample.flags = isCorrupt ? Constants.CORRUPT : 0;
        request.sample.peer = (int) (request.sample.seq >>> 48);
    }

    void served(Request request) {
        if (!request.isRecorded) return;
        Sample sample = request.sample;
        if (isTopic) {
            sample.endNs = sample.beginNs;
            sample.beginNs = request.sendNs;
        } else {
            sample.endNs = Kit.now();
        }
        results.served(sample);
    }

    void drain() throws InterruptedException {
        window.awaitStop();
        long stopNs = window.stopNs();
        long lingerEndNs = stopNs + spec.lingerMs * MS_NS;
        while (Kit.now() < Math.min(lingerEndNs, quietEndNs(stopNs))) Thread.sleep(5);
    }

    private long quietEndNs(long stopNs) {
        return Math.max(lastArrivalNs, stopNs) + spec.quietMs * MS_NS;
    }
}
