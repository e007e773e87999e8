using System;
using System.Collections.Generic;
using Wattwire;

/// Measures the kit's allocations per message for each kind of message, without a middleware; exits
/// with 1 if there are any.
static class Allocations {
    const int Messages = 1000, Node = 7;

    static int Main() {
        int faults = 0;
        foreach (Spec spec in Shapes()) {
            string name = $"{spec.PayloadLiteral}{spec.PayloadEncoding} {spec.Reply} {spec.Verify}";
            faults += Fault("call, " + name, Caller(spec));
            faults += Fault("request, " + name, Server(spec));
        }
        Console.WriteLine($"{faults} faults");
        return faults == 0 ? 0 : 1;
    }

    static IEnumerable<Spec> Shapes() {
        foreach (string encoding in new[] { "bytes", "text", "record" })
            foreach (string reply in new[] { "echo", "ack", "literal" })
                foreach (string verify in new[] { "header", "full" })
                    yield return Shape(encoding, reply, verify, "");
        yield return Shape("bytes", "echo", "full", "literal ");
    }

    static Spec Shape(string encoding, string reply, string verify, string literal) => new Spec {
        Pattern = "service", Loop = "open", PeriodNs = 1, DurationNs = 100 * Messages,
        OverrunNs = 3600000000000, TimeoutNs = 1000000000, OutstandingMax = 1, Node = Node,
        PeersNodes = new long[] { Node }, PayloadBytes = 160, PayloadEncoding = encoding,
        PayloadLiteral = literal, Reply = reply, ReplyLiteral = "a reply", Verify = verify,
        RecordCapacity = 100 * Messages };

    static Kit Begun(Spec spec, string role) {
        spec.Role = role;
        var kit = new Kit(spec);
        kit.window.Go(Kit.NowNs());
        return kit;
    }

    static Action Caller(Spec spec) {
        Kit kit = Begun(spec, "client");
        byte[] message = kit.Payload.New();
        Call call = (request, timeoutNs, worker) => kit.Payload.Reply(request);
        return () => {
            if (!kit.CallOnce(call, message, 0))
                throw new InvalidOperationException("the schedule has ended");
        };
    }

    static Action Server(Spec spec) {
        Kit kit = Begun(spec, "server");
        byte[] message = kit.Payload.New();
        ulong counter = 0;
        return () => {
            kit.Payload.Stamp(message, (ulong)Node << 48 | counter++, Kit.NowNs());
            Arrival request = kit.Serve(message);
            if (request.Reply == null || request.IsCorrupt)
                throw new InvalidOperationException("not answered");
            kit.Served(request);
        };
    }

    static int Fault(string name, Action message) {
        Allocated(message, Messages); // compiles the code
        long once = Allocated(message, Messages), twice = Allocated(message, 2 * Messages);
        if (once == twice)
            return 0;
        Console.WriteLine($"{name}: {(twice - once) / Messages} bytes per message; allowed: 0");
        return 1;
    }

    static long Allocated(Action message, int count) {
        long before = GC.GetAllocatedBytesForCurrentThread();
        for (int i = 0; i < count; i++)
            message();
        return GC.GetAllocatedBytesForCurrentThread() - before;
    }
}
