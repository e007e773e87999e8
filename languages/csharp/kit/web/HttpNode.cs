using System;
using System.Runtime.InteropServices;
using Wattwire;

/// What both ends over HTTP tell and refuse: those of Mono's class library.
static class HttpNode {
    const long PayloadBytesMax = 16777216, RecordBytesMax = 4194304;

    /// Ends with 3 where the spec asks for what the manifests exclude.
    public static void CheckLimits(Kit kit) {
        long most = kit.Spec.PayloadEncoding == "record" ? RecordBytesMax : PayloadBytesMax;
        if (kit.Spec.PayloadBytes > most)
            throw new NodeError(ExitCode.Unsupported,
                $"payload.bytes {kit.Spec.PayloadBytes}; at most {most}");
        Settings settings = kit.Spec.Settings;
        if (settings.Has("http_version") && settings.Text("http_version") == "2")
            throw new NodeError(ExitCode.Unsupported,
                "settings.http_version 2; the libraries have 1.1");
        if (settings.Text("tcp_nodelay") != "default")
            throw new NodeError(ExitCode.Unsupported,
                "settings.tcp_nodelay; the libraries have only their defaults");
    }

    /// READY. `noDelay` is what the library sets by itself, as seen in its system calls.
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
