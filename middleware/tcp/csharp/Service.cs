using System.Collections.Generic;
using System.IO;
using System.Threading;
using Wattwire;

/// Client and server, ping and pong: the frame's number matches a reply to its call.
static class Service {
    /// A call that waits for the thread that reads all replies.
    sealed class Waiting {
        public readonly AutoResetEvent Come = new AutoResetEvent(false);
        public ulong Number;
        public byte[] Reply;
    }

    public static void Client(Kit kit) {
        Stream stream = Listener.ConnectAll(kit)[0];
        ulong calls = 0;
        Call alone = (message, timeoutNs, _) => {
            ulong number = calls++;
            long deadlineNs = Kit.NowNs() + timeoutNs;
            stream.Send(Stream.Request, number, message);
            Frame frame;
            do
                frame = stream.Receive(deadlineNs);
            while (frame != null && (frame.Kind != Stream.Reply || frame.Number != number));
            return frame?.Payload;
        };
        Node.Ready(kit, stream.Socket, 1, kit.Probe(alone));
        kit.Calls(kit.Workers > 1 ? Overlapping(kit, stream, calls) : alone);
    }

    static Call Overlapping(Kit kit, Stream stream, ulong calls) {
        var waiting = new Dictionary<ulong, Waiting>();
        var places = new Waiting[kit.Workers];
        for (int worker = 0; worker < places.Length; worker++)
            places[worker] = new Waiting();
        Kit.Start(() => ReadReplies(stream, waiting));
        return (message, timeoutNs, worker) => {
            Waiting mine = places[worker];
            lock (waiting) { // the lock also serialises frames
                mine.Reply = null;
                mine.Number = calls++;
                waiting[mine.Number] = mine;
            }
            lock (stream)
                stream.Send(Stream.Request, mine.Number, message);
            mine.Come.WaitOne((int)((timeoutNs + 999999) / 1000000));
            lock (waiting) {
                waiting.Remove(mine.Number);
                mine.Come.Reset();
                return mine.Reply;
            }
        };
    }

    static void ReadReplies(Stream stream, Dictionary<ulong, Waiting> waiting) {
        try {
            while (true) {
                Frame frame = stream.Receive();
                lock (waiting) {
                    if (frame.Kind == Stream.Reply
                            && waiting.TryGetValue(frame.Number, out var found)) {
                        found.Reply = frame.Payload;
                        found.Come.Set();
                    }
                }
            }
        } catch (IOException) { } // the server has ended: open calls fail or time out
    }

    public static void Server(Kit kit) {
        var listener = new Listener(kit, (stream, frame) => {
            Arrival request = kit.Serve(frame.Payload);
            if (request.Reply == null)
                return;
            stream.Send(Stream.Reply, frame.Number, request.Reply);
            kit.Served(request);
        });
        long discoveryNs = listener.AwaitPeers(kit);
        Node.Ready(kit, listener.Socket, listener.Accepted, discoveryNs);
        kit.Drain();
    }
}
