package wattwire;

import static java.nio.charset.StandardCharsets.UTF_8;

import wattwire.Request.Verdict;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Collection;

/** Creates, checks and answers messages: bytes, characters, a literal, or a record. */
public final class Payload {
    /** Stands for an arrival that the cell's decoder rejected. */
    public static final byte[] UNREADABLE = {};

    private static final String ALPHABET =
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    private static final byte[] HEX_DIGITS = "0123456789abcdef".getBytes(UTF_8);
    private static final VarHandle WORD =
            MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
    private static final int TOKEN_BYTES = 8; // the part of the fill that identifies a run
    private static final int NAME_BYTES = 16; // size of a record's name
    private static final int RECORD_BYTES_MIN = 96;
    private static final int RECORD_STEP_BYTES = 16;
    private static final int FIRST_SAMPLE = 9; // the first sample's word, after name and pose

    /** The part of a spec that determines the messages. */
    record Shape(
            String encoding,
            long bytes,
            long seed,
            String literal,
            String verify,
            String reply,
            String replyLiteral) {

        static Shape of(Spec spec) {
            return new Shape(
                    spec.payloadEncoding,
                    spec.payloadBytes,
                    spec.payloadSeed,
                    spec.payloadLiteral,
                    spec.verify,
                    spec.reply,
                    spec.replyLiteral);
        }
    }

    final boolean isLiteral;
    private final boolean isText;
    private final boolean isRecord;
    private final boolean checksFill;
    private final String replyKind;
    private final byte[] template;
    private final byte[] literalReply;
    private final int wordBytes; // size of the sequence, and of the send time
    private final int fillAt;
    private final int fillEnd; // offset of the trailer, or the length if there is none
    private final BitSet senders = new BitSet();

    /** Creates the payload; `senders` are the nodes whose messages arrive (a client's: its own). */
    Payload(Shape shape, Collection<Long> senders) {
        for (long node : senders) this.senders.set((int) node);
        isText = shape.encoding.equals("text");
        isRecord = shape.encoding.equals("record");
        isLiteral = !shape.literal.isEmpty();
        checksFill = shape.verify.equals("full");
        replyKind = shape.reply;
        wordBytes = isText ? 16 : 8;
        literalReply =
                isRecord
                        ? record(shape.replyLiteral, 0).array()
                        : shape.replyLiteral.getBytes(UTF_8);
        int bytes = (int) shape.bytes;
        if (isRecord) bytes -= bytes % RECORD_STEP_BYTES;
        template = isLiteral ? shape.literal.getBytes(UTF_8) : new byte[bytes];
        fillAt = 2 * wordBytes;
        fillEnd = template.length >= 3 * wordBytes ? template.length - wordBytes : template.length;
        if (!isLiteral) fill(shape.seed);
    }

    /** Returns a message that can be stamped. */
    byte[] newMessage() {
        return template.clone();
    }

    /** Fills the template between header and trailer with the words of splitmix64. */
    private void fill(long seed) {
        ByteBuffer words = littleEndian(new byte[template.length + 23 & -8]);
        for (long state = seed; words.hasRemaining(); ) {
            state += 0x9E3779B97F4A7C15L;
            long z = (state ^ state >>> 30) * 0xBF58476D1CE4E5B9L;
            z = (z ^ z >>> 27) * 0x94D049BB133111EBL;
            words.putLong(z ^ z >>> 31);
        }
        ByteBuffer out = littleEndian(template).position(fillAt).limit(fillEnd);
        if (isRecord) {
            for (int i = 0; i < NAME_BYTES; i++) out.put(character(words.get(i)));
            fillNumbers(words, out);
        } else if (isText) {
            for (int i = 0; out.hasRemaining(); i++) out.put(character(words.get(i)));
        } else {
            out.put(words.flip().limit(out.remaining()));
        }
    }

    private static byte character(byte of) {
        return (byte) ALPHABET.charAt(of & 63);
    }

    /** Writes pose and samples of a record. */
    private static void fillNumbers(ByteBuffer words, ByteBuffer out) {
        for (int j = 2; out.hasRemaining(); j++) {
            if (j >= FIRST_SAMPLE) {
                int state = words.get(8 * j) & 255;
                out.putInt(j - FIRST_SAMPLE).putInt(state);
            }
            out.putDouble(words.getInt(8 * j + 4) / 1024.0);
        }
    }

    private static ByteBuffer littleEndian(byte[] data) {
        return ByteBuffer.wrap(data).order(ByteOrder.LITTLE_ENDIAN);
    }

    /** Returns the nominal bytes of a record (C-32) with this name; a longer name is omitted. */
    public static ByteBuffer record(String name, int samples) {
        ByteBuffer data = littleEndian(new byte[RECORD_BYTES_MIN + RECORD_STEP_BYTES * samples]);
        byte[] bytes = name.getBytes(UTF_8);
        return bytes.length > NAME_BYTES ? data : data.put(16, bytes);
    }

    /** Returns the name of a record. */
    public static String name(byte[] record) {
        return new String(record, 16, NAME_BYTES, UTF_8).replace("\0", "");
    }

    /** Writes sequence and send time; it does not change literals. */
    void stamp(byte[] message, long seq, long sendNs) {
        if (isLiteral) return;
        writeWord(message, 0, seq);
        writeWord(message, wordBytes, sendNs);
        if (fillEnd < message.length) writeWord(message, fillEnd, seq);
    }

    private void writeWord(byte[] message, int at, long word) {
        if (!isText) {
            WORD.set(message, at, word);
            return;
        }
        for (int i = 0; i < wordBytes; i += 2) {
            int octet = (int) (word >>> 4 * i) & 0xFF;
            message[at + i] = HEX_DIGITS[octet >> 4];
            message[at + i + 1] = HEX_DIGITS[octet & 15];
        }
    }

    /** Returns whether eight bytes or sixteen lower-case digits are present. */
    private boolean hasWord(byte[] data, int at) {
        if (data.length < at + wordBytes) return false;
        for (int i = at; isText && i < at + wordBytes; i++) if (digit(data[i]) < 0) return false;
        return true;
    }

    private long readWord(byte[] data, int at) {
        if (!isText) return (long) WORD.get(data, at);
        long word = 0;
        for (int i = 0; i < wordBytes; i += 2) {
            long octet = digit(data[at + i]) << 4 | digit(data[at + i + 1]);
            word |= octet << 4 * i;
        }
        return word;
    }

    private static int digit(byte character) {
        if (character >= '0' && character <= '9') return character - '0';
        return character >= 'a' && character <= 'f' ? character - 'a' + 10 : -1;
    }

    /** Determines the verdict of an arrival (C-21). */
    void check(byte[] data, Request request) {
        request.hasSeq = !isLiteral && hasWord(data, 0);
        request.sendNs = Constants.UNKNOWN_NS;
        request.verdict = Verdict.CORRUPT;
        if (isLiteral && Arrays.equals(data, template)) request.verdict = Verdict.VALID;
        if (!request.hasSeq) return;
        request.sample.seq = readWord(data, 0);
        if (!hasWord(data, wordBytes)) return;
        request.sendNs = readWord(data, wordBytes);
        int tokenEnd = Math.min(fillEnd, fillAt + (isRecord ? NAME_BYTES : TOKEN_BYTES));
        if (!senders.get((int) (request.sample.seq >>> 48)) || !hasFill(data, tokenEnd))
            request.verdict = Verdict.FOREIGN;
        else if (data.length == template.length
                && Arrays.equals(data, fillEnd, data.length, data, 0, data.length - fillEnd)
                && (!checksFill || hasFill(data, fillEnd))) request.verdict = Verdict.VALID;
    }

    /** Compares the fill as far as it is present. */
    private boolean hasFill(byte[] data, int end) {
        int ownEnd = Math.min(end, data.length);
        return Arrays.equals(data, fillAt, ownEnd, template, fillAt, ownEnd);
    }

    /** Returns the reply to a request (C-23); an ack uses the buffer of `owner`. */
    byte[] reply(byte[] request, Request owner) {
        if (replyKind.equals("echo")) return request;
        if (replyKind.equals("literal")) return literalReply;
        int bytes = isRecord ? RECORD_BYTES_MIN : Math.min(request.length, wordBytes);
        byte[] ack = owner.acknowledgement;
        if (ack == null || ack.length != bytes) ack = owner.acknowledgement = new byte[bytes];
        System.arraycopy(request, 0, ack, 0, isRecord ? fillAt : bytes);
        if (isRecord)
            System.arraycopy(
                    request, request.length - wordBytes, ack, bytes - wordBytes, wordBytes);
        return ack;
    }

    /** Returns whether this is the reply to `message`; `scratch` belongs to the caller. */
    boolean isReply(byte[] reply, byte[] message, Request scratch) {
        if (isLiteral || !replyKind.equals("echo"))
            return Arrays.equals(reply, reply(message, scratch));
        check(reply, scratch);
        return scratch.verdict == Verdict.VALID
                && Arrays.equals(reply, 0, wordBytes, message, 0, wordBytes);
    }
}
