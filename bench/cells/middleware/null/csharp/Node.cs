using System;
using System.Collections.Generic;
using System.Linq;

/// A node without a middleware: each call is its own reply, and its server is handed requests.
static class Node {
    static void Main(string[] args) => Kit.Run(args, "settings.arrivals:I",
        "encoding.bytes pacing.kit loop.open reply.echo",
        new Dictionary<string, Action<Kit>> { { "client", Client }, { "server", Server } });

    static void Client(Kit kit) {
        Ready(kit);
        kit.Calls((message, timeoutNs, worker) => message);
    }

    /// Hands its kit the requests before READY, when nothing else runs.
    static void Server(Kit kit) {
        int[] senders = kit.Spec["peers.nodes"].Select(number => (int)number).ToArray();
        var messages = new Messages(kit.Spec, senders);
        var requests = new byte[kit.Number("settings.arrivals")][];
        for (int counter = 0; counter < requests.Length; counter++) {
            requests[counter] = messages.New();
            messages.Stamp(requests[counter], (ulong)senders[0] << 48 | (uint)counter, Kit.Now());
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
