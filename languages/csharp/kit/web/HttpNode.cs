using System;
using System.Runtime.InteropServices;
using Wattwire;

/// READY of client and server over HTTP.
static class HttpNode {
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
                transport = "tcp/ipv4" },
            new { delivery = "reliable", ordering = "none", overload = "block" });
}
