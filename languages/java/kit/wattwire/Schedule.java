package wattwire;

import com.eclipsesource.json.JsonObject;

import java.util.concurrent.locks.LockSupport;

/** Computes the due times of messages, and assigns each message to one worker (C-10, C-11). */
final class Schedule {
    private static final long NAP_NS = 100_000_000; // maximum time between two checks for STOP
    private final Window window;
    private final boolean isClosed;
    private final long phaseNs;
    private final long periodNs;
    private final long spinNs;
    private final long latestNs; // latest begin of a message, counted from the start
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
     * Waits until the next message is due, and writes its sequence into the sample. It takes a slot
     * only when it is due, so STOP leaves no gap (C-17). Returns false if no message follows.
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

    /** Returns the time at its end, which is before `dueNs` if STOP arrived. */
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
