// Written by tools/generate_constants.py from contract/schemas; make constants writes it anew.
package wattwire;

import java.util.List;

/** What a run asks of its node; the contract's table has what each key means. */
public final class Spec {
    public final long contract;
    public final String run;
    public final String cell;
    public final String pattern;
    public final String role;
    public final long node;
    public final long index;
    public final List<Long> peersNodes;
    public final long peersCount;
    public final List<String> peersEndpoints;
    public final String loop;
    public final long periodNs;
    public final long phaseNs;
    public final long durationNs;
    public final long count;
    public final long countBeyond;
    public final long warmupNs;
    public final long overrunNs;
    public final long timeoutNs;
    public final long outstandingMax;
    public final long quietMs;
    public final long lingerMs;
    public final long readyTimeoutMs;
    public final String pacing;
    public final long spinNs;
    public final long payloadBytes;
    public final String payloadEncoding;
    public final long payloadSeed;
    public final String payloadLiteral;
    public final String reply;
    public final String replyLiteral;
    public final String verify;
    public final long actionFeedback;
    public final long recordCapacity;
    public final String tlsAuthority;
    public final String tlsCertificate;
    public final String tlsKey;
    public final Settings settings;

    Spec(KeyReader keys, Settings settings) {
        contract = keys.integer("contract");
        run = keys.text("run");
        cell = keys.text("cell");
        pattern = keys.text("pattern");
        role = keys.text("role");
        node = keys.integer("node");
        index = keys.integer("index");
        peersNodes = keys.integers("peers.nodes");
        peersCount = keys.integer("peers.count");
        peersEndpoints = keys.texts("peers.endpoints");
        loop = keys.text("loop");
        periodNs = keys.integer("period_ns");
        phaseNs = keys.integer("phase_ns");
        durationNs = keys.integer("duration_ns");
        count = keys.integer("count");
        countBeyond = keys.integer("count_beyond");
        warmupNs = keys.integer("warmup_ns");
        overrunNs = keys.integer("overrun_ns");
        timeoutNs = keys.integer("timeout_ns");
        outstandingMax = keys.integer("outstanding_max");
        quietMs = keys.integer("quiet_ms");
        lingerMs = keys.integer("linger_ms");
        readyTimeoutMs = keys.integer("ready_timeout_ms");
        pacing = keys.text("pacing");
        spinNs = keys.integer("spin_ns");
        payloadBytes = keys.integer("payload.bytes");
        payloadEncoding = keys.text("payload.encoding");
        payloadSeed = keys.integer("payload.seed");
        payloadLiteral = keys.text("payload.literal");
        reply = keys.text("reply");
        replyLiteral = keys.text("reply.literal");
        verify = keys.text("verify");
        actionFeedback = keys.integer("action.feedback");
        recordCapacity = keys.integer("record.capacity");
        tlsAuthority = keys.text("tls.authority");
        tlsCertificate = keys.text("tls.certificate");
        tlsKey = keys.text("tls.key");
        this.settings = settings;
    }
}
