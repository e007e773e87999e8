package wattwire;

import static java.nio.charset.StandardCharsets.UTF_8;
import com.eclipsesource.json.*;
import java.nio.*;
import java.util.*;

/** What is sent, and what C-21 says of an arrival: bytes, characters, a literal, or a record. */
public final class Payload {
    public static final byte[] UNREADABLE = {}; // what a decoder gives that refuses its input
    static final int OK = 0, CORRUPT = 8, FOREIGN = -1; // CORRUPT is the sample's flag
    static final long UNKNOWN_NS = Long.MIN_VALUE, NO_SEQ = -1; // there is no node 65535
    private static final String ALPHABET =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    final boolean literal, record, tooShort;
    final byte[] template;
    private final boolean text, full;
    private final int word, trailer; // how long they are: a sequence, that at the end
    private final byte[] replyLiteral;
    private final String replyKind;
    private final BitSet nodes = new BitSet();

    record Arrival(int verdict, long seq, long sendNs) {}

    Payload(JsonObject spec, List<JsonValue> nodes) {
        for (JsonValue node : nodes) this.nodes.set(node.asInt());
        text = spec.getString("payload.encoding", "").equals("text");
        record = spec.getString("payload.encoding", "").equals("record");
        full = spec.getString("verify", "").equals("full");
        word = text ? 16 : 8;
        String given = spec.getString("payload.literal", "");
        literal = !given.isEmpty();
        int size = spec.getInt("payload.bytes", 0);
        template = literal ? given.getBytes(UTF_8) : new byte[record ? size / 16 * 16 : size];
        trailer = template.length >= 3 * word ? word : 0;
        tooShort = !literal && template.length < 2 * word;
        if (!literal && !tooShort) fill(spec.getLong("payload.seed", 0));
        replyKind = spec.getString("reply", "");
        String reply = spec.getString("reply.literal", "");
        replyLiteral = record ? record(reply, 0).array() : reply.getBytes(UTF_8);
    }

    /** Fills the template between header and trailer: splitmix64 (C-19, C-20, C-32). */
    private void fill(long seed) {
        ByteBuffer words = ordered(new byte[template.length + 23 & -8]);
        for (long state = seed; words.hasRemaining(); ) {
            state += 0x9E3779B97F4A7C15L;
            long z = (state ^ state >>> 30) * 0xBF58476D1CE4E5B9L;
            z = (z ^ z >>> 27) * 0x94D049BB133111EBL;
            words.putLong(z ^ z >>> 31);
        }
        ByteBuffer out = ordered(template).position(2 * word).limit(template.length - trailer);
        for (int i = 0; out.hasRemaining() && !(record && i == 16); i++)
            out.put(text || record ? (byte) ALPHABET.charAt(words.get(i) & 63) : words.get(i));
        for (int j = 2; out.hasRemaining(); j++) { // the rest of a record
            if (j >= 9) out.putInt(j - 9).putInt(words.get(8 * j) & 255);
            out.putDouble(words.getInt(8 * j + 4) / 1024.0);
        }
    }

    static ByteBuffer ordered(byte[] data) {
        return ByteBuffer.wrap(data).order(ByteOrder.LITTLE_ENDIAN);
    }

    /** A record is, to the kit, the nominal bytes of C-32's table; a longer name is nobody's. */
    public static ByteBuffer record(String name, int samples) {
        ByteBuffer data = ordered(new byte[96 + 16 * samples]);
        byte[] bytes = name.getBytes(UTF_8);
        return bytes.length > 16 ? data : data.put(16, bytes);
    }

    public static String name(byte[] record) {
        return new String(record, 16, 16, UTF_8).replace("\0", "");
    }

    void stamp(byte[] data, long seq, long sendNs) {
        if (literal) return;
        byte[] head = ordered(new byte[16]).putLong(seq).putLong(sendNs).array();
        if (text) head = HexFormat.of().formatHex(head).getBytes(UTF_8);
        System.arraycopy(head, 0, data, 0, 2 * word);
        System.arraycopy(head, 0, data, data.length - trailer, trailer);
    }

    Arrival check(byte[] data) {
        int end = data.length, fill = 2 * word, fillEnd = Math.min(end, template.length - trailer);
        if (literal) // its sequence is for the kit to count
            return new Arrival(Arrays.equals(data, template) ? OK : CORRUPT, NO_SEQ, UNKNOWN_NS);
        String hex = text ? new String(data, 0, Math.min(fill, end / 2 * 2)) : "";
        if (end < word || !hex.matches("[0-9a-f]*"))
            return new Arrival(CORRUPT, NO_SEQ, UNKNOWN_NS);
        ByteBuffer head = ordered(text ? HexFormat.of().parseHex(hex) : data);
        long seq = head.getLong(0);
        if (end < fill) return new Arrival(CORRUPT, seq, UNKNOWN_NS);
        int ownEnd = Math.min(fillEnd, fill + (record ? 16 : 8));
        boolean ours = nodes.get((int) (seq >>> 48))
            && Arrays.equals(data, fill, ownEnd, template, fill, ownEnd);
        boolean whole = end == template.length
            && Arrays.equals(data, end - trailer, end, data, 0, trailer)
            && (!full || Arrays.equals(data, fill, fillEnd, template, fill, fillEnd));
        return new Arrival(!ours ? FOREIGN : whole ? OK : CORRUPT, seq, head.getLong(8));
    }

    /** A server's reply (C-23). */
    byte[] reply(byte[] request) {
        if (!replyKind.equals("ack")) return replyKind.equals("echo") ? request : replyLiteral;
        if (!record) return Arrays.copyOf(request, Math.min(request.length, word));
        ByteBuffer ack = record("", 0).put(0, request, 0, 16);
        return ack.put(88, request, request.length - 8, 8).array();
    }

    /** Whether this is the reply to what was sent. */
    boolean isDue(byte[] reply, byte[] sent) {
        if (literal || !replyKind.equals("echo")) return Arrays.equals(reply, reply(sent));
        return check(reply).verdict == OK && Arrays.equals(reply, 0, word, sent, 0, word);
    }
}
