using System;
using System.Collections.Generic;
using System.Net.Sockets;
using System.Runtime.InteropServices;
using Newtonsoft.Json.Linq;
using Wattwire;

/// TCP node: length-prefixed frames, one connection for each pair of nodes.
static class Node {
    const int SegmentBytes = 2; // TCP_MAXSEG

    static void Main(string[] args) => Kit.Run(args,
        "tcp_nodelay:b tcp_quickack:b writes:i receive_buffer_bytes:i send_buffer_bytes:i bind_address:s",
        "encoding.bytes encoding.text pacing.kit loop.open loop.closed " +
        "reply.echo reply.ack reply.literal literal async_client",
        new Dictionary<string, Action<Kit>> {
            { "publisher", Topic.Publish }, { "subscriber", Topic.Subscribe },
            { "client", Service.Client }, { "server", Service.Server },
            { "ping", Service.Client }, { "pong", Service.Server },
        });

    /// READY; `asked` is the socket that is asked what is in force.
    public static void Ready(Kit kit, Socket asked, int matched, long? discoveryNs) {
        var effective = new JObject {
            { "tcp_nodelay", asked.NoDelay },
            { "tcp_quickack", kit.Flag("settings.tcp_quickack") },
            { "writes", kit.Number("settings.writes") },
            { "receive_buffer_bytes", Stream.Option(asked, Stream.SocketLevel, Stream.ReceiveBuffer) },
            { "send_buffer_bytes", Stream.Option(asked, Stream.SocketLevel, Stream.SendBuffer) },
            { "bind_address", kit.Text("settings.bind_address") },
            { "segment_bytes", Stream.Option(asked, Stream.TcpLevel, SegmentBytes) },
            { "transport", "tcp/ipv4" },
        };
        var library = new[] { "System.Net.Sockets", typeof(Socket).Assembly.GetName().Version.ToString(),
            RuntimeInformation.FrameworkDescription };
        kit.Ready(matched, discoveryNs, library, effective, new[] { "reliable", "per_sender", "block" });
    }
}
