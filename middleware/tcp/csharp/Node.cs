using System;
using System.Net.Sockets;
using System.Runtime.InteropServices;
using Wattwire;

/// TCP node: length-prefixed frames, one connection for each pair of nodes.
static class Node {
    const int SegmentBytes = 2; // TCP_MAXSEG

    static void Main(string[] args) => Kit.Run(args, new Roles {
        { "publisher", Topic.Publish }, { "subscriber", Topic.Subscribe },
        { "client", Service.Client }, { "server", Service.Server },
        { "ping", Service.Client }, { "pong", Service.Server },
    });

    /// Prints READY; `asked` is the socket whose options are reported.
    public static void Ready(Kit kit, Socket asked, int matched, long? discoveryNs) {
        kit.Ready(matched, discoveryNs,
            new { name = "System.Net.Sockets", version = Environment.Version.ToString(),
                build = RuntimeInformation.FrameworkDescription },
            new { tcp_nodelay = asked.NoDelay,
                receive_buffer_bytes =
                    Stream.Option(asked, Stream.SocketLevel, Stream.ReceiveBuffer),
                send_buffer_bytes = Stream.Option(asked, Stream.SocketLevel, Stream.SendBuffer),
                bind_address = Listener.Address(kit),
                segment_bytes = Stream.Option(asked, Stream.TcpLevel, SegmentBytes),
                transport = "tcp/ipv4" },
            new { delivery = "reliable", ordering = "per_sender", overload = "block" });
    }
}
