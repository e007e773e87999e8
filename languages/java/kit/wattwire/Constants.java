// Written by tools/generate_constants.py from contract/schemas; make constants writes it anew.
package wattwire;

import java.util.List;
import java.util.Set;

/** The contract's codes, and the layout of a sample file. */
final class Constants {
    static final int CONTRACT = 2;

    static final long UNKNOWN_NS = -9223372036854775808L;
    static final int UNKNOWN_PEER = 65535;
    static final long PROBE_COUNTER = 281474976710655L;

    /** In the order of their codes (C-24). */
    static final List<String> ROLES =
            List.of(
                    "publisher",
                    "subscriber",
                    "server",
                    "client",
                    "action_server",
                    "action_client",
                    "ping",
                    "pong");

    /** Those that keep a schedule. */
    static final Set<String> SENDING_ROLES = Set.of("publisher", "client", "action_client", "ping");

    // Kinds of a sample (C-25).
    static final byte MESSAGE = 0;
    static final byte CALL = 1;
    static final byte GOAL = 2;
    static final byte ACCEPT = 3;
    static final byte FEEDBACK = 4;
    static final byte RESULT = 5;
    static final byte RELAY = 6;

    // Flags of a sample (C-25).
    static final byte WARM_UP = 1;
    static final byte FAILED = 2;
    static final byte TIMEOUT = 4;
    static final byte CORRUPT = 8;

    static final String FILE_MAGIC = "WATTWIRE";
    static final short FILE_VERSION = 1;
    static final byte FILE_CLOCK = 1;

    // Where the fields of the file's header are (C-24).
    static final int MAGIC_AT = 0;
    static final int VERSION_AT = 8;
    static final int HEADER_BYTES_AT = 10;
    static final int RECORD_BYTES_AT = 12;
    static final int ROLE_AT = 14;
    static final int CLOCK_AT = 15;
    static final int NODE_AT = 16;
    static final int COUNT_AT = 24;
    static final int OVERFLOW_AT = 32;
    static final int SEED_AT = 40;
    static final int HEADER_BYTES = 64;

    // Where the fields of a sample are (C-25).
    static final int SAMPLE_SEQ_AT = 0;
    static final int SAMPLE_INTENDED_NS_AT = 8;
    static final int SAMPLE_BEGIN_NS_AT = 16;
    static final int SAMPLE_END_NS_AT = 24;
    static final int SAMPLE_BYTES_AT = 32;
    static final int SAMPLE_PEER_AT = 36;
    static final int SAMPLE_KIND_AT = 38;
    static final int SAMPLE_FLAGS_AT = 39;
    static final int SAMPLE_BYTES = 40;

    private Constants() {}
}
