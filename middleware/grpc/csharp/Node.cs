using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;
using Wattwire;

/// gRPC node: the C core by P/Invoke, as in the library Grpc.Core.
static class Node {
    const long PayloadBytesMax = 4000000, RecordBytesMax = 3000000;

    static void Main(string[] args) => Kit.Run(args, new Cell {
        Roles = new Dictionary<string, Action<Kit>> {
            { "client", Client.Run }, { "server", Server.Run },
            { "ping", Client.Run }, { "pong", Server.Run },
        },
        Settings = new[] {
            "keep_alive", "tls", "server_workers",
        },
        Capabilities = new[] {
            "encoding.bytes", "encoding.text", "encoding.record", "pacing.kit", "loop.open",
            "loop.closed", "reply.echo", "reply.ack", "reply.literal", "literal", "async_client",
            "tls",
        },
    });

    /// Ends the node with 3 if the manifests exclude the spec; otherwise starts the library.
    public static void Begin(Kit kit) {
        long most = kit.Spec.PayloadEncoding == "record" ? RecordBytesMax : PayloadBytesMax;
        if (kit.Spec.PayloadBytes > most)
            throw new NodeError(ExitCode.Unsupported, $"payload.bytes above {most}");
        Core.grpc_init();
    }

    public static void Ready(Kit kit, long? discoveryNs, long workers) {
        string version = Marshal.PtrToStringAnsi(Core.grpc_version_string());
        kit.Ready(null, discoveryNs,
            new { name = "gRPC C core by P/Invoke", version,
                build = RuntimeInformation.FrameworkDescription },
            new { keep_alive = kit.Spec.Settings.Text("keep_alive") == "off" ? "off" : "on",
                tls = kit.Spec.TlsAuthority == "" ? "none" : "on",
                server_workers = workers, transport = "tcp/ipv4" },
            new { delivery = "reliable", ordering = "none", overload = "block" });
    }
}
