using System;
using System.Collections.Generic;
using System.Net.Sockets;
using System.Runtime.InteropServices;

/// TCP node: length-prefixed frames, one connection for each pair of nodes.
static class Node {
    const int SegmentBytes = 2; // TCP_MAXSEG

    static void Main(string[] args) => Kit.Run(args,
        "settings.tcp_nodelay:B settings.tcp_quickack:B settings.writes:I " +
        "settings.bind_address:S " +
        "settings.receive_buffer_bytes:I settings.send_buffer_bytes:I",
        "encoding.bytes encoding.text pacing.kit loop.open loop.closed " +
        "reply.echo reply.ack reply.literal literal async_client",
        new Dictionary<string, Action<Kit>> {
            { "publisher", Topic.Publish }, { "subscriber", Topic.Subscribe },
            { "client", Service.Client }, { "server", Service.Server },
            { "ping", Service.Client }, { "pong", Service.Server },
        });

    /// READY; `asked` is the socket that is asked what is in force.
    public static void Ready(Kit kit, Socket asked, int matched, long? discoveryNs) {
        kit.Ready(matched, discoveryNs,
            new { name = "System.Net.Sockets", version = Environment.Version.ToString(),
                build = RuntimeInformation.FrameworkDescription },
            new { tcp_nodelay = asked.NoDelay,
                tcp_quickack = (bool)kit.Spec["settings.tcp_quickack"],
                writes = kit.Number("settings.writes"),
                receive_buffer_bytes =
                    Stream.Option(asked, Stream.SocketLevel, Stream.ReceiveBuffer),
                send_buffer_bytes = Stream.Option(asked, Stream.SocketLevel, Stream.SendBuffer),
                bind_address = kit.Text("settings.bind_address"),
                segment_bytes = Stream.Option(asked, Stream.TcpLevel, SegmentBytes),
                transport = "tcp/ipv4" },
            new { delivery = "reliable", ordering = "per_sender", overload = "block" });
    }
}
