package wattwire;

import static java.nio.charset.StandardCharsets.US_ASCII;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;

/** The sample file (C-24) in memory, which is zeroed before the window. */
final class Samples {
    private final ByteBuffer file;
    private final byte kind;
    private long overflow;

    Samples(long capacity, byte kind) {
        int bytes = Math.toIntExact(Constants.HEADER_BYTES + Constants.SAMPLE_BYTES * capacity);
        file = ByteBuffer.wrap(new byte[bytes]).order(ByteOrder.LITTLE_ENDIAN);
        file.position(Constants.HEADER_BYTES);
        this.kind = kind;
    }

    long recorded() {
        return (file.position() - Constants.HEADER_BYTES) / Constants.SAMPLE_BYTES;
    }

    long overflow() {
        return overflow;
    }

    void add(Sample sample) {
        add(sample, kind);
    }

    void add(Sample sample, byte ofKind) {
        if (file.remaining() < Constants.SAMPLE_BYTES) {
            overflow++;
            return;
        }
        int at = file.position();
        file.putLong(at + Constants.SAMPLE_SEQ_AT, sample.seq);
        file.putLong(at + Constants.SAMPLE_INTENDED_NS_AT, sample.intendedNs);
        file.putLong(at + Constants.SAMPLE_BEGIN_NS_AT, sample.beginNs);
        file.putLong(at + Constants.SAMPLE_END_NS_AT, sample.endNs);
        file.putInt(at + Constants.SAMPLE_BYTES_AT, sample.bytes);
        file.putShort(at + Constants.SAMPLE_PEER_AT, (short) sample.peer);
        file.put(at + Constants.SAMPLE_KIND_AT, ofKind);
        file.put(at + Constants.SAMPLE_FLAGS_AT, (byte) sample.flags);
        file.position(at + Constants.SAMPLE_BYTES);
    }

    void write(Path path, int role, int node, long seed) throws IOException {
        file.put(Constants.MAGIC_AT, Constants.FILE_MAGIC.getBytes(US_ASCII));
        file.putShort(Constants.VERSION_AT, Constants.FILE_VERSION);
        file.putShort(Constants.HEADER_BYTES_AT, (short) Constants.HEADER_BYTES);
        file.putShort(Constants.RECORD_BYTES_AT, (short) Constants.SAMPLE_BYTES);
        file.put(Constants.ROLE_AT, (byte) role);
        file.put(Constants.CLOCK_AT, Constants.FILE_CLOCK);
        file.putShort(Constants.NODE_AT, (short) node);
        file.putLong(Constants.COUNT_AT, recorded());
        file.putLong(Constants.OVERFLOW_AT, overflow);
        file.putLong(Constants.SEED_AT, seed);
        Files.write(path, Arrays.copyOf(file.array(), file.position()));
    }
}
