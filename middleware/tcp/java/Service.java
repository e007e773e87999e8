import wattwire.Kit;
import wattwire.Request;

import java.io.IOException;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;

/** Client and server, ping and pong: the frame's number matches a reply to its call. */
final class Service {
    private final Stream stream;
    private final AtomicLong calls = new AtomicLong();
    private final Map<Long, CompletableFuture<byte[]>> waiting = new ConcurrentHashMap<>();

    private Service(Stream stream) {
        this.stream = stream;
    }

    static void client(Kit kit) throws Exception {
        Service client = new Service(Links.connectAll(kit).get(0));
        boolean overlap = kit.workers() > 1;
        if (overlap) {
            Thread receiver = new Thread(client::receiveAll, "replies");
            receiver.setDaemon(true);
            receiver.start();
        }
        Kit.Call call = overlap ? client::callAmongOthers : client::callAlone;
        Links.ready(kit, client.stream.channel, 1, kit.probe(call));
        kit.calls(call);
    }

    private byte[] callAlone(int worker, byte[] message, long limitNs) throws IOException {
        long called = calls.getAndIncrement();
        long beginNs = Kit.now();
        stream.send(Stream.REQUEST, called, message);
        for (long leftNs; (leftNs = limitNs - (Kit.now() - beginNs)) > 0 && stream.open; ) {
            boolean came = stream.receive(leftNs);
            if (came && stream.kind == Stream.REPLY && stream.number == called)
                return stream.payload;
        }
        if (!stream.open) throw new IOException("the server closed the connection");
        return null;
    }

    /** Makes a call while `receiveAll` takes the replies of all workers' calls. */
    private byte[] callAmongOthers(int worker, byte[] message, long limitNs) throws IOException {
        long called = calls.getAndIncrement();
        CompletableFuture<byte[]> reply = new CompletableFuture<>();
        waiting.put(called, reply);
        try {
            stream.send(Stream.REQUEST, called, message);
            return reply.get(limitNs, TimeUnit.NANOSECONDS);
        } catch (TimeoutException late) {
            return null;
        } catch (InterruptedException | ExecutionException error) {
            throw new IOException(error);
        } finally {
            waiting.remove(called);
        }
    }

    private void receiveAll() {
        try {
            while (stream.open) {
                boolean came = stream.receive(1_000_000_000);
                var reply = came ? waiting.get(stream.number) : null;
                if (reply != null && stream.kind == Stream.REPLY) reply.complete(stream.payload);
            }
        } catch (IOException error) {
            System.err.println("replies: " + error); // calls that are open time out
        }
    }

    static void server(Kit kit) throws Exception {
        Links.accept(
                kit,
                stream -> {
                    Request request = kit.serve(stream.payload);
                    if (request.reply() == null) return;
                    stream.send(Stream.REPLY, stream.number, request.reply());
                    kit.served(request);
                });
    }
}
