import static java.nio.charset.StandardCharsets.UTF_8;

import com.eclipsesource.json.Json;
import com.eclipsesource.json.JsonObject;
import com.eclipsesource.json.JsonValue;
import com.google.protobuf.ByteString;
import io.grpc.ManagedChannel;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import java.io.IOException;
import java.util.concurrent.TimeUnit;
import wattwire.CallsGrpc;
import wattwire.Kit;
import wattwire.Wattwire;

/** A blocking stub on one channel for all workers; with keep_alive off, a channel a call. */
final class Client {
    private static final byte[] NO_ANSWER = {};
    private final boolean record;
    private final boolean characters;
    private final boolean kept;
    private final String endpoint;
    private final ManagedChannel channel;

    private Client(Kit kit, String endpoint) {
        record = kit.text("payload.encoding").equals("record");
        boolean text = kit.text("payload.encoding").equals("text");
        characters = text || !kit.text("payload.literal").isEmpty();
        kept = !kit.text("settings.keep_alive").equals("off");
        this.endpoint = endpoint;
        channel = open();
    }

    private ManagedChannel open() {
        return NettyChannelBuilder.forTarget("dns:///" + endpoint).usePlaintext().build();
    }

    static void ask(Kit kit) throws Exception {
        Node.checkSettings(kit);
        if (kit.spec.get("peers.endpoints").asArray().isEmpty())
            Kit.fail(2, "peers.endpoints", "peers.endpoints: found none; allowed: HOST:PORT");
        String endpoint = kit.spec.get("peers.endpoints").asArray().get(0).asString();
        Client asking = new Client(kit, endpoint);
        JsonValue discoveryNs = Json.value(kit.probe(asking::call));
        Node.ready(kit, new JsonObject()
            .add("server_workers", kit.spec.get("settings.server_workers")), discoveryNs);
        kit.calls(asking::call);
        asking.channel.shutdownNow();
    }

    private byte[] call(int worker, byte[] message, long limitNs) throws IOException {
        ManagedChannel used = kept ? channel : open();
        var stub = CallsGrpc.newBlockingStub(used).withDeadlineAfter(limitNs, TimeUnit.NANOSECONDS);
        try {
            if (record) return Records.toMessage(stub.record(Records.of(message)));
            if (characters) {
                String text = new String(message, UTF_8);
                return stub.text(Wattwire.TextPayload.newBuilder().setData(text).build()).getData()
                    .getBytes(UTF_8);
            }
            ByteString data = ByteString.copyFrom(message);
            return stub.bytes(Wattwire.BytesPayload.newBuilder().setData(data).build()).getData()
                .toByteArray();
        } catch (StatusRuntimeException error) {
            Status.Code code = error.getStatus().getCode();
            if (code == Status.Code.DEADLINE_EXCEEDED) return null;
            if (code == Status.Code.UNAVAILABLE) throw new IOException(error);
            return NO_ANSWER;
        } finally {
            if (!kept) used.shutdownNow();
        }
    }
}
