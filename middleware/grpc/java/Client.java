import static java.nio.charset.StandardCharsets.UTF_8;

import com.eclipsesource.json.JsonObject;
import com.google.protobuf.ByteString;

import io.grpc.ManagedChannel;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.netty.shaded.io.grpc.netty.GrpcSslContexts;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.shaded.io.netty.handler.ssl.SslContext;

import wattwire.CallsGrpc;
import wattwire.Kit;
import wattwire.Wattwire;

import web.Cell;
import web.Tls;

import java.io.IOException;
import java.util.concurrent.TimeUnit;

/** A blocking stub on one channel for all workers; with keep_alive off, a channel per call. */
final class Client {
    private final String encoding;
    private final boolean kept;
    private final String endpoint;
    private final SslContext tls; // null: no TLS
    private final ManagedChannel channel;

    private Client(Kit kit, String endpoint) throws Exception {
        encoding = Cell.encoding(kit);
        kept = !kit.spec.settings.text("keep_alive").equals("off");
        this.endpoint = endpoint;
        tls =
                !Tls.isEnabled(kit)
                        ? null
                        : GrpcSslContexts.forClient()
                                .trustManager(Tls.certificates(kit.spec.tlsAuthority))
                                .build();
        channel = open();
    }

    private ManagedChannel open() {
        var builder = NettyChannelBuilder.forTarget("dns:///" + endpoint);
        return (tls == null ? builder.usePlaintext() : builder.sslContext(tls)).build();
    }

    static void ask(Kit kit) throws Exception {
        Client asking = new Client(kit, Cell.endpoint(kit, "HOST:PORT"));
        long discoveryNs = kit.probe(asking::call);
        Node.ready(kit, new JsonObject(), discoveryNs);
        kit.calls(asking::call);
        asking.channel.shutdownNow();
    }

    private byte[] call(int worker, byte[] message, long limitNs) throws IOException {
        ManagedChannel used = kept ? channel : open();
        var stub = CallsGrpc.newBlockingStub(used).withDeadlineAfter(limitNs, TimeUnit.NANOSECONDS);
        try {
            if (encoding.equals("record"))
                return Records.toMessage(stub.record(Records.of(message)));
            if (encoding.equals("text")) {
                String text = new String(message, UTF_8);
                return stub.text(Wattwire.TextPayload.newBuilder().setData(text).build())
                        .getData()
                        .getBytes(UTF_8);
            }
            ByteString data = ByteString.copyFrom(message);
            return stub.bytes(Wattwire.BytesPayload.newBuilder().setData(data).build())
                    .getData()
                    .toByteArray();
        } catch (StatusRuntimeException error) {
            if (error.getStatus().getCode() == Status.Code.DEADLINE_EXCEEDED) return null;
            throw new IOException(error + ": " + error.getStatus().getCause(), error);
        } finally {
            if (!kept) used.shutdownNow();
        }
    }
}
