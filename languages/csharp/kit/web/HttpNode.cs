using System;
using System.Runtime.InteropServices;
using Wattwire;

/// READY and the limits that client and server over HTTP share.
static class HttpNode {
    const long PayloadBytesMax = 16777216, RecordBytesMax = 4194304;

    /// Ends the node with 3 if the manifests exclude the spec.
    public static void CheckLimits(Kit kit) {
        long most = kit.Spec.PayloadEncoding == "record" ? RecordBytesMax : PayloadBytesMax;
        if (kit.Spec.PayloadBytes > most)
            throw new NodeError(ExitCode.Unsupported,
                $"payload.bytes {kit.Spec.PayloadBytes}; at most {most}");
        Settings settings = kit.Spec.Settings;
        if (settings.Has("http_version") && settings.Text("http_version") == "2")
            throw new NodeError(ExitCode.Unsupported,
                "settings.http_version 2; the libraries support only 1.1");
        if (settings.Text("tcp_nodelay") != "default")
            throw new NodeError(ExitCode.Unsupported,
                "settings.tcp_nodelay; the libraries support only their defaults");
    }

    /// Prints READY. `noDelay` is the library's default, known from its system calls.

    public static void Ready(Kit kit, Type library, long? discoveryNs, bool noDelay,
            object server) =>
        kit.Ready(null, discoveryNs,
            new { name = library.FullName, version = library.Assembly.GetName().Version.ToString(),
                build = RuntimeInformation.FrameworkDescription },
            new { http_version = "1.1",
                keep_alive = kit.Spec.Settings.Text("keep_alive") == "off" ? "off" : "on",
                tcp_nodelay = noDelay, server,
                tls = kit.Spec.TlsAuthority == "" ? "none" : "on",
                server_workers = kit.Spec.Settings.Integer("server_workers"),
                transport = "tcp/ipv4" },
            new { delivery = "reliable", ordering = "none", overload = "block" });
}
