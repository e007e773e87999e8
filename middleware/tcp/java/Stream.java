import jdk.net.ExtendedSocketOptions;

import wattwire.Kit;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.util.concurrent.locks.LockSupport;

/** A connection that carries frames; README.md describes the bytes and the delays. */
final class Stream {
    static final int MESSAGE = 0;
    static final int REQUEST = 1;
    static final int REPLY = 2;
    private static final int HEAD_BYTES = 13;
    private static final int READ_BYTES = 65_536;
    private static final int PAYLOAD_BYTES_MAX = 67_108_864;

    final SocketChannel channel;
    private final boolean twoWrites;
    private final boolean quickAck;
    private final long timeoutNs;
    private final ByteBuffer head =
            ByteBuffer.allocateDirect(HEAD_BYTES).order(ByteOrder.LITTLE_ENDIAN);
    private final Selector selector = Selector.open();
    private ByteBuffer in =
            ByteBuffer.allocate(HEAD_BYTES + READ_BYTES).order(ByteOrder.LITTLE_ENDIAN).limit(0);
    volatile boolean open = true;

    /** Fields of the frame that `receive` took. */
    int kind;

    long number;
    byte[] payload;

    Stream(Kit kit, SocketChannel channel) throws IOException {
        this.channel = channel;
        twoWrites = kit.spec.settings.integer("writes") == 2;
        quickAck = kit.spec.settings.text("tcp_quickack").equals("on");
        timeoutNs = kit.spec.timeoutNs;
        channel.configureBlocking(false);
        channel.register(selector, SelectionKey.OP_READ);
        acknowledge();
    }

    void close() throws IOException {
        open = false;
        channel.close();
    }

    /** Passes a frame to the kernel; if this fails, a partly sent frame breaks the stream. */
    synchronized void send(int kind, long number, byte[] message) throws IOException {
        if (!open) throw new IOException("the connection is closed");
        ByteBuffer[] parts = {head, ByteBuffer.wrap(message)};
        head.clear().putInt(message.length).put((byte) kind).putLong(number).flip();
        long beginNs = Kit.now();
        try {
            while (twoWrites && head.hasRemaining())
                if (channel.write(head) == 0) awaitRoom(beginNs);
            while (head.hasRemaining() || parts[1].hasRemaining())
                if (channel.write(parts) == 0) awaitRoom(beginNs);
        } catch (IOException error) {
            close();
            throw error;
        }
    }

    private void awaitRoom(long beginNs) throws IOException {
        if (Kit.now() - beginNs > timeoutNs) throw new IOException("the peer's buffer stayed full");
        LockSupport.parkNanos(50_000);
    }

    /** Reads the next frame into the fields above; false at the timeout (in ms) or the end. */
    boolean receive(long limitNs) throws IOException {
        long beginNs = Kit.now();
        while (open && !take()) {
            long leftNs = limitNs - (Kit.now() - beginNs);
            if (!open || leftNs <= 0) return false;
            if (selector.select(ready -> {}, (leftNs + 999_999) / 1_000_000) > 0) read();
        }
        return open;
    }

    private boolean take() throws IOException {
        if (in.remaining() < HEAD_BYTES) return false;
        int at = in.position();
        int length = in.getInt(at);
        kind = in.get(at + 4);
        number = in.getLong(at + 5);
        if (kind < MESSAGE || kind > REPLY || length < 0 || length > PAYLOAD_BYTES_MAX) {
            close();
            return false;
        }
        if (in.remaining() < HEAD_BYTES + length) {
            int needed = HEAD_BYTES + length + READ_BYTES;
            if (in.capacity() < HEAD_BYTES + length)
                in = ByteBuffer.allocate(needed).order(ByteOrder.LITTLE_ENDIAN).put(in).flip();
            return false;
        }
        payload = new byte[length];
        in.position(at + HEAD_BYTES).get(payload);
        return true;
    }

    /** Reads the available bytes once; the end of the stream or an error closes it. */
    private void read() throws IOException {
        in.compact();
        int count = -1;
        try {
            count = channel.read(in);
        } catch (IOException error) {
            System.err.println("read: " + error); // a peer that died leaves this, or an end
        }
        in.flip();
        if (count < 0) close();
        else acknowledge();
    }

    private void acknowledge() throws IOException {
        // Linux resets this mode by itself (tcp(7)), so it is set after every read.
        if (quickAck) channel.setOption(ExtendedSocketOptions.TCP_QUICKACK, true);
    }
}
