import io.grpc.ManagedChannel;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;

import wattwire.CallsGrpc;
import wattwire.Wattwire;

import java.util.concurrent.TimeUnit;

/** `Node HOST PORT WARM CALLS`: calls per second of a loop on a grpc-java stub, without a kit. */
public final class Node {
    private static final String TEXT = "Hello World";

    private Node() {}

    public static void main(String[] arguments) {
        String target = "dns:///" + arguments[0] + ":" + arguments[1];
        int warm = Integer.parseInt(arguments[2]);
        int calls = Integer.parseInt(arguments[3]);
        ManagedChannel channel = NettyChannelBuilder.forTarget(target).usePlaintext().build();
        CallsGrpc.CallsBlockingStub stub = CallsGrpc.newBlockingStub(channel);
        call(stub);
        System.out.println("begun");
        System.out.flush();
        for (int i = 0; i < warm; i++) call(stub);
        long startNs = System.nanoTime();
        System.out.println("warm");
        System.out.flush();
        for (int i = 0; i < calls; i++) call(stub);
        System.out.println(calls * 1e9 / (System.nanoTime() - startNs));
        channel.shutdownNow();
    }

    private static void call(CallsGrpc.CallsBlockingStub stub) {
        String found =
                stub.withDeadlineAfter(5, TimeUnit.SECONDS)
                        .text(Wattwire.TextPayload.newBuilder().setData(TEXT).build())
                        .getData();
        if (found.equals(TEXT)) return;
        System.err.println(found + ", not " + TEXT);
        System.exit(1);
    }
}
