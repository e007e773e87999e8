using System;
using System.Collections.Generic;
using System.Net.Sockets;
using System.Runtime.InteropServices;
using Wattwire;

/// TCP node: length-prefixed frames, one connection for each pair of nodes.
static class Node {
    const int SegmentBytes = 2; // TCP_MAXSEG

    static void Main(string[] args) => Kit.Run(args, new Cell {
        Roles = new Dictionary<string, Action<Kit>> {
            { "publisher", Topic.Publish }, { "subscriber", Topic.Subscribe },
            { "client", Service.Client }, { "server", Service.Server },
            { "ping", Service.Client }, { "pong", Service.Server },
        },
        Settings = new[] {
            "tcp_nodelay", "tcp_quickack", "connections", "writes", "bind_address",
            "receive_buffer_bytes", "send_buffer_bytes",
        },
        Capabilities = new[] {
            "encoding.bytes", "encoding.text", "pacing.kit", "loop.open", "loop.closed",
            "reply.echo", "reply.ack", "reply.literal", "literal", "async_client",
        },
    });

    /// Prints READY; `asked` is the socket whose options are reported.
    public static void Ready(Kit kit, Socket asked, int matched, long? discoveryNs) {
        kit.Ready(matched, discoveryNs,
            new { name = "System.Net.Sockets", version = Environment.Version.ToString(),
                build = RuntimeInformation.FrameworkDescription },
            new { tcp_nodelay = asked.NoDelay,
                tcp_quickack = kit.Spec.Settings.Text("tcp_quickack"),
                connections = kit.Spec.Settings.Integer("connections"),
                writes = kit.Spec.Settings.Integer("writes"),
                receive_buffer_bytes =
                    Stream.Option(asked, Stream.SocketLevel, Stream.ReceiveBuffer),
                send_buffer_bytes = Stream.Option(asked, Stream.SocketLevel, Stream.SendBuffer),
                bind_address = Listener.Address(kit),
                segment_bytes = Stream.Option(asked, Stream.TcpLevel, SegmentBytes),
                transport = "tcp/ipv4" },
            new { delivery = "reliable", ordering = "per_sender", overload = "block" });
    }
}
