import com.eclipsesource.json.JsonObject;

import wattwire.ExitCode;
import wattwire.Kit;
import wattwire.NodeException;
import wattwire.Ready;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.channels.NetworkChannel;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;

/** Connects to all peers, or accepts their connections, with a thread for each. */
final class Links {
    /** Handles one frame, which is in the stream's fields. */
    interface Handler {
        void handle(Stream stream) throws IOException;
    }

    private static final int BACKLOG = 128;

    private Links() {}

    /** Returns a stream to each of peers.endpoints, in their order. */
    static List<Stream> connectAll(Kit kit) throws IOException {
        List<Stream> streams = new ArrayList<>();
        for (var endpoint : kit.spec.peersEndpoints) streams.add(connect(kit, endpoint));
        if (streams.isEmpty() || streams.size() < kit.spec.peersCount)
            throw refused("found " + streams.size() + "; allowed: peers.count");
        return streams;
    }

    private static NodeException refused(String reason) {
        return new NodeException(ExitCode.BAD_SPEC, "peers.endpoints", reason);
    }

    private static Stream connect(Kit kit, String endpoint) throws IOException {
        int colon = endpoint.lastIndexOf(':');
        String port = endpoint.substring(colon + 1);
        if (colon < 1 || !port.matches("[0-9]{1,5}") || Integer.parseInt(port) > 65_535)
            throw refused("found " + endpoint + "; allowed: HOST:PORT");
        SocketChannel channel = SocketChannel.open();
        size(kit, channel, true, true);
        setNoDelay(kit, channel);
        int limitMs = (int) Math.max(1, kit.leftToReadyNs("connection to " + endpoint) / 1_000_000);
        String host = endpoint.substring(0, colon);
        try {
            channel.socket().connect(new InetSocketAddress(host, Integer.parseInt(port)), limitMs);
        } catch (IOException error) {
            throw new IOException("connect " + endpoint + ": " + error.getMessage(), error);
        }
        return new Stream(kit, channel);
    }

    private static void setNoDelay(Kit kit, SocketChannel channel) throws IOException {
        boolean asked = kit.spec.settings.flag("tcp_nodelay");
        channel.setOption(StandardSocketOptions.TCP_NODELAY, asked);
    }

    /** Sets buffer sizes, which apply to the handshake; listeners have no send buffer. */
    private static void size(Kit kit, NetworkChannel channel, boolean receive, boolean send)
            throws IOException {
        int receiveBytes = (int) kit.spec.settings.integer("receive_buffer_bytes");
        int sendBytes = (int) kit.spec.settings.integer("send_buffer_bytes");
        if (receive && receiveBytes > 0)
            channel.setOption(StandardSocketOptions.SO_RCVBUF, receiveBytes);
        if (send && sendBytes > 0) channel.setOption(StandardSocketOptions.SO_SNDBUF, sendBytes);
    }

    /**
     * Returns the address on which this node listens: the setting, or the host's if it is empty.
     */
    private static String listenAddress(Kit kit) throws NodeException {
        String setting = kit.spec.settings.text("bind_address");
        return setting.isEmpty() ? kit.spec.hostAddress : setting;
    }

    /** Listens, passes every frame to `handler`, and is READY when peers.count have connected. */
    static void accept(Kit kit, Handler handler) throws Exception {
        String host = listenAddress(kit);
        ServerSocketChannel listening = ServerSocketChannel.open();
        size(kit, listening, true, false);
        try {
            listening.bind(new InetSocketAddress(host, 0), BACKLOG);
        } catch (IOException error) {
            throw new IOException("listen on " + host + ": " + error.getMessage(), error);
        }
        String endpoint = host + ":" + listening.socket().getLocalPort();
        kit.listening(endpoint);
        AtomicInteger accepted = new AtomicInteger();
        List<SocketChannel> first = new ArrayList<>();
        start(
                "accept",
                () -> {
                    while (true) {
                        SocketChannel opened = listening.accept();
                        size(kit, opened, false, true);
                        // Java cannot set this option on the listening socket, from which accepted
                        // sockets would inherit it.
                        setNoDelay(kit, opened);
                        Stream stream = new Stream(kit, opened);
                        if (first.isEmpty()) first.add(opened);
                        start(
                                "stream",
                                () -> {
                                    while (stream.open)
                                        if (stream.receive(1_000_000_000)) handler.handle(stream);
                                });
                        accepted.incrementAndGet();
                    }
                });
        long beginNs = Kit.now();
        long wanted = kit.spec.peersCount;
        while (accepted.get() < wanted) {
            kit.leftToReadyNs("connection of peer " + (accepted.get() + 1) + " of " + wanted);
            LockSupport.parkNanos(1_000_000);
        }
        NetworkChannel asked = first.isEmpty() ? listening : first.get(0);
        ready(kit, asked, accepted.get(), Kit.now() - beginNs);
        kit.drain();
    }

    private interface Loop {
        void run() throws IOException;
    }

    private static void start(String name, Loop loop) {
        Thread thread =
                new Thread(
                        () -> {
                            try {
                                loop.run();
                            } catch (IOException error) {
                                System.err.println(name + ": " + error); // its peer has left
                            }
                        },
                        name);
        thread.setDaemon(true);
        thread.start();
    }

    /** Prints READY; `asked` is the socket whose options are reported. */
    static void ready(Kit kit, NetworkChannel asked, int matched, long discoveryNs)
            throws IOException {
        JsonObject effective =
                new JsonObject()
                        .add("transport", "tcp/ipv4")
                        .add("bind_address", listenAddress(kit));
        for (var option : asked.supportedOptions()) {
            String value = String.valueOf(asked.getOption(option));
            if (option.name().equals("SO_RCVBUF"))
                effective.add("receive_buffer_bytes", Integer.parseInt(value));
            if (option.name().equals("SO_SNDBUF"))
                effective.add("send_buffer_bytes", Integer.parseInt(value));
            if (option.name().equals("TCP_NODELAY"))
                effective.add("tcp_nodelay", Boolean.parseBoolean(value));
        }
        var library =
                new Ready.Library(
                        "java.nio",
                        System.getProperty("java.version"),
                        System.getProperty("java.vm.name"));
        var guarantee = new Ready.Guarantee("reliable", "per_sender", "block");
        kit.ready(new Ready((long) matched, discoveryNs, library, effective, guarantee));
    }
}
