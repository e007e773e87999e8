using System;
using Wattwire;

/// A node without a middleware: each call is its own reply, and its server is handed requests.
static class Node {
    static void Main(string[] args) => Kit.Run(args, new Roles {
        { "client", Client }, { "server", Server },
    });

    static void Client(Kit kit) {
        Ready(kit);
        kit.Calls((message, timeoutNs, worker) => message);
    }

    /// Hands its kit the requests before READY, when nothing else runs.
    static void Server(Kit kit) {
        ulong sender = (ulong)kit.Spec.PeersNodes[0];
        var requests = new byte[kit.Spec.Settings.Integer("arrivals")][];
        for (int counter = 0; counter < requests.Length; counter++) {
            requests[counter] = kit.Payload.New();
            kit.Payload.Stamp(requests[counter], sender << 48 | (uint)counter, Kit.NowNs());
        }
        foreach (byte[] request in requests)
            kit.Served(kit.Serve(request));
        Ready(kit);
        kit.Drain();
    }

    static void Ready(Kit kit) => kit.Ready(null, null,
        new { name = "nothing", version = "1", build = "" }, new { },
        new { delivery = "best_effort", ordering = "none", overload = "drop_newest" });
}
