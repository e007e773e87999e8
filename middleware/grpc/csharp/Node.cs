using System;
using System.Runtime.InteropServices;
using Wattwire;

/// gRPC node: the C core by P/Invoke, as in the library Grpc.Core.
static class Node {
    static void Main(string[] args) => Kit.Run(args, new Roles {
        { "client", Client.Run }, { "server", Server.Run },
        { "ping", Client.Run }, { "pong", Server.Run },
    });

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
