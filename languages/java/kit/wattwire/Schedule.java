package wattwire;

import com.eclipsesource.json.JsonObject;

import java.util.concurrent.locks.LockSupport;

/** Says when each message is due, and gives each to one worker (C-10, C-11). */
final class Schedule {
    private static final long NAP_NS = 100_000_000; // how often a wait looks for STOP
    private final Window window;
    private final boolean isClosed;
    private final long phaseNs;
    private final long periodNs;
    private final long spinNs;
    private final long latestNs; // after the start
    private final long messagesMax;
    final long scheduled;
    private long next;

    Schedule(Spec spec, Window window) {
        this.window = window;
        isClosed = spec.loop.equals("closed");
        phaseNs = isClosed ? 0 : spec.phaseNs;
        periodNs = isClosed ? 0 : spec.periodNs;
        spinNs = spec.spinNs;
        latestNs = isClosed ? Window.NEVER : spec.durationNs + spec.overrunNs;
        scheduled = isClosed ? spec.count : slots(spec);
        messagesMax = scheduled + spec.countBeyond;
    }

    private static long slots(Spec spec) {
        long lastNs = spec.durationNs - spec.phaseNs - 1;
        return Math.max(0, Math.floorDiv(lastNs, spec.periodNs) + 1);
    }

    /**
     * Waits until the next message is due, and gives its sequence to the sample. A slot is taken
     * when it is due, so that STOP leaves no gap (C-17). False: none is to follow.
     */
    synchronized boolean await(Sample sample, long firstSeq) {
        if (next >= messagesMax) return false;
        long startNs = window.startNs();
        long dueNs = startNs + phaseNs + next * periodNs;
        long nowNs = sleepUntil(dueNs);
        if (window.isOver() || nowNs - startNs > latestNs) return false;
        if (next == scheduled) {
            Lines.print("COUNTED", new JsonObject());
            nowNs = Kit.now();
        }
        sample.seq = firstSeq + next;
        sample.beginNs = nowNs;
        sample.intendedNs = isClosed ? nowNs : dueNs;
        next++;
        return true;
    }

    /** Returns the time, which is earlier where STOP came. */
    private long sleepUntil(long dueNs) {
        long nowNs = Kit.now();
        while (nowNs < dueNs && !window.isOver()) {
            long leftNs = dueNs - nowNs - spinNs;
            if (leftNs > 0) LockSupport.parkNanos(Math.min(leftNs, NAP_NS));
            nowNs = Kit.now();
        }
        return nowNs;
    }
}
