package wattwire;

import com.eclipsesource.json.JsonObject;

import java.io.IOException;
import java.nio.file.Path;

/** A node's counts and records. Any thread may add to them. */
final class Results {
    private final Spec spec;
    private final Window window;
    private final Samples samples;
    private long firstNs = Window.NEVER;
    private long lastNs;
    private long sent;
    private long received;
    private long foreign;
    private long corrupt;
    private long probes;

    Results(Spec spec, Window window, boolean isTopic) {
        this.spec = spec;
        this.window = window;
        byte kind = isTopic ? Constants.MESSAGE : Constants.CALL;
        samples = new Samples(spec.recordCapacity, kind);
    }

    synchronized void probed() {
        probes++;
    }

    /** Counts and records a publisher's message. */
    synchronized void published(Sample sample) {
        noteSpan(sample);
        if (sample.flags == 0) sent++;
        record(sample, sample.intendedNs);
    }

    /** Counts and records a client's call; its end is unknown if no reply was in time. */
    synchronized void called(Sample sample) {
        noteSpan(sample);
        sent++;
        if ((sample.flags & (Constants.TIMEOUT | Constants.FAILED)) == 0) received++;
        else sample.endNs = Constants.UNKNOWN_NS;
        if (sample.flags == Constants.CORRUPT) corrupt++;
        record(sample, sample.intendedNs);
    }

    private void noteSpan(Sample sample) {
        firstNs = Math.min(firstNs, sample.beginNs);
        lastNs = Math.max(lastNs, sample.endNs);
    }

    synchronized void foreign() {
        foreign++;
    }

    /** Counts an arrival of this run, and returns the number of earlier arrivals. */
    synchronized long arrived(boolean hasSeq, boolean isCorrupt) {
        if (isCorrupt) corrupt++;
        return hasSeq ? received++ : received;
    }

    /** Records a receiver's message. */
    synchronized void served(Sample sample) {
        record(sample, sample.endNs);
    }

    /** Stores a sample; `whenNs` decides on its warm-up flag (C-13). */
    private void record(Sample sample, long whenNs) {
        if (whenNs - spec.warmupNs < window.startNs()) sample.flags |= Constants.WARM_UP;
        samples.add(sample);
    }

    synchronized JsonObject sentFields(long scheduled) {
        boolean hasBegun = lastNs > 0;
        return new JsonObject()
                .add("begin_ns", Lines.nullable(hasBegun ? firstNs : null))
                .add("end_ns", Lines.nullable(hasBegun ? lastNs : null))
                .add("sent", sent)
                .add("scheduled", scheduled)
                .add("skipped", 0);
    }

    /** Writes the sample file and returns the fields of DONE. */
    synchronized JsonObject finish(Path path) throws IOException {
        int role = Constants.ROLES.indexOf(spec.role);
        samples.write(path, role, (int) spec.node, spec.payloadSeed);
        return new JsonObject()
                .add("sent", sent)
                .add("received", received)
                .add("recorded", samples.recorded())
                .add("overflow", samples.overflow())
                .add("foreign", foreign)
                .add("corrupt", corrupt)
                .add("probes", probes);
    }
}
