import static java.nio.charset.StandardCharsets.UTF_8;

import com.eclipsesource.json.JsonObject;
import com.google.protobuf.ByteString;

import io.grpc.Status;
import io.grpc.netty.shaded.io.grpc.netty.GrpcSslContexts;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import io.grpc.netty.shaded.io.netty.handler.ssl.SslContextBuilder;
import io.grpc.stub.StreamObserver;

import wattwire.CallsGrpc;
import wattwire.Kit;
import wattwire.Request;
import wattwire.Wattwire;

import web.Cell;
import web.Tls;

import java.net.InetSocketAddress;
import java.security.cert.X509Certificate;
import java.util.concurrent.Executors;
import java.util.function.Function;

/** The service's implementation. */
final class Server extends CallsGrpc.CallsImplBase {
    private final Kit kit;

    private Server(Kit kit) {
        this.kit = kit;
    }

    /** Hands over the reply, converted by `encode`. */
    private <T> void reply(byte[] message, StreamObserver<T> out, Function<byte[], T> encode) {
        Request request = kit.serve(message);
        if (request.reply() == null) {
            String reason = "not of this run (C-21)";
            out.onError(Status.FAILED_PRECONDITION.withDescription(reason).asRuntimeException());
            return;
        }
        out.onNext(encode.apply(request.reply()));
        out.onCompleted();
        kit.served(request);
    }

    @Override
    public void bytes(Wattwire.BytesPayload in, StreamObserver<Wattwire.BytesPayload> out) {
        reply(
                in.getData().toByteArray(),
                out,
                data ->
                        Wattwire.BytesPayload.newBuilder()
                                .setData(ByteString.copyFrom(data))
                                .build());
    }

    @Override
    public void text(Wattwire.TextPayload in, StreamObserver<Wattwire.TextPayload> out) {
        reply(
                in.getData().getBytes(UTF_8),
                out,
                data -> Wattwire.TextPayload.newBuilder().setData(new String(data, UTF_8)).build());
    }

    @Override
    public void record(Wattwire.RecordPayload in, StreamObserver<Wattwire.RecordPayload> out) {
        byte[] message = Records.toMessage(in);
        reply(message, out, data -> data == message ? in : Records.of(data));
    }

    static void answer(Kit kit) throws Exception {
        var builder =
                NettyServerBuilder.forAddress(new InetSocketAddress(kit.spec.hostAddress, 0))
                        .addService(new Server(kit));
        int workers = (int) kit.spec.settings.integer("server_workers");
        if (workers > 0) builder.executor(Executors.newFixedThreadPool(workers));
        if (Tls.isEnabled(kit)) {
            X509Certificate[] chain = Tls.certificates(kit.spec.tlsCertificate);
            var key = Tls.key(kit.spec.tlsKey, chain[0].getPublicKey());
            builder.sslContext(
                    GrpcSslContexts.configure(SslContextBuilder.forServer(key, chain)).build());
        }
        io.grpc.Server server = builder.build().start();
        kit.listening(kit.spec.hostAddress + ":" + server.getPort());
        Node.ready(kit, new JsonObject().add("server_workers", Cell.workers(workers)), null);
        kit.drain();
        server.shutdownNow();
    }
}
