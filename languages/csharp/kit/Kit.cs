using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Runtime.InteropServices;
using System.Text;
using System.Threading;
using Newtonsoft.Json;
using Newtonsoft.Json.Linq;

/// Ends the node: 2 the spec is refused, 3 the cell cannot, 4 the middleware failed.
public sealed class NodeError : Exception {
    public readonly int Code;
    public readonly string Key;
    public NodeError(int code, string reason, string key = null) : base(reason) =>
        (Code, Key) = (code, key);
}

/// Returns the reply, or null at the timeout; an IOException says that it was not sent.
/// `worker` is below Workers, for cells that keep a connection for each.
public delegate byte[] Call(byte[] message, long timeoutNs, int worker);
/// One node of one run; ../README.md tells the order of calls.
public sealed class Kit {
    const long Never = long.MaxValue, UnknownNs = long.MinValue;
    const int WarmUp = 1, Failed = 2, Timeout = 4, Corrupt = 8;
    // Keys with the first letter of their JSON type; a small one: lists of such.
    const string Keys = "contract:I run:S cell:S pattern:S role:S node:I index:I peers.nodes:i " +
        "peers.count:I peers.endpoints:s loop:S period_ns:I phase_ns:I duration_ns:I count:I " +
        "count_beyond:I warmup_ns:I overrun_ns:I timeout_ns:I outstanding_max:I quiet_ms:I " +
        "linger_ms:I ready_timeout_ms:I pacing:S spin_ns:I payload.bytes:I payload.encoding:S " +
        "payload.seed:I payload.literal:S reply:S reply.literal:S verify:S action.feedback:I " +
        "record.capacity:I tls.authority:S tls.certificate:S tls.key:S ";
    static readonly long processStartNs = Now();
    public readonly JObject Spec;
    readonly bool closed, topic, sends;
    readonly long node, peer, scheduled;
    readonly Messages messages;
    readonly long[] words; // a file: eight of the header, five a record (C-24, C-25)
    readonly ManualResetEvent goOrStop = new ManualResetEvent(false);
    readonly ManualResetEvent stop = new ManualResetEvent(false);
    readonly object schedule = new object(), counts = new object();
    long startNs = Never, stopNs = Never, lastArrivalNs, next, recorded, overflow;
    long sent, received, foreign, corrupt, probes;
    long? firstNs, lastNs;
    string why = ""; // a probe was not sent
    // What the class library lacks: a clock and sleep in ns, descriptor 3, an end at once.
    struct Timespec { public IntPtr Seconds, Nanoseconds; } // as wide as time_t and long
    [DllImport("libc")] static extern int clock_gettime(int clock, out Timespec time);
    [DllImport("libc")] static extern int nanosleep(ref Timespec wanted, IntPtr left);
    [DllImport("libc")] static extern IntPtr write(int descriptor, byte[] data, IntPtr count);
    [DllImport("libc")] static extern int fcntl(int descriptor, int command, int flags);
    [DllImport("libc", EntryPoint = "_exit")] static extern void Exit(int code);
    static Kit() { fcntl(3, 2, 1); } // close-on-exec: lines are this process's alone
    public static long Now() {
        clock_gettime(1, out Timespec time); // CLOCK_MONOTONIC
        return (long)time.Seconds * 1000000000 + (long)time.Nanoseconds;
    }
    static void Sleep(long ns) { // less than a second; shorter where a signal comes
        var wanted = new Timespec { Nanoseconds = (IntPtr)Math.Max(0, Math.Min(ns, 999999999)) };
        nanosleep(ref wanted, IntPtr.Zero);
    }
    static void Line(string keyword, object fields) {
        string line = keyword + " " + JsonConvert.SerializeObject(fields) + "\n";
        byte[] data = Encoding.UTF8.GetBytes(line);
        write(3, data, (IntPtr)data.Length); // one call, so that threads' lines do not mix
    }
    /// Runs this node and ends the process. `settings`: words settings.NAME:TYPE, as in Keys.
    public static void Run(string[] args, string settings, string capabilities,
            Dictionary<string, Action<Kit>> roles) {
        AppDomain.CurrentDomain.UnhandledException += (_, e) => Fail((Exception)e.ExceptionObject);
        if (args.Length != 4 || args[0] != "--spec" || args[2] != "--out")
            throw new NodeError(2, "allowed: --spec FILE --out DIR and nothing else", "--spec");
        var kit = new Kit(ReadSpec(args[1], settings));
        string wanted = $"{kit.Text("role")} encoding.{kit.Text("payload.encoding")} " +
            $"loop.{kit.Text("loop")} pacing.{kit.Text("pacing")} reply.{kit.Text("reply")}" +
            (kit.messages.Literal ? " literal" : "") + (kit.Workers > 1 ? " async_client" : "");
        string has = capabilities + " " + string.Join(" ", roles.Keys);
        foreach (string lacking in wanted.Split().Except(has.Split()))
            throw new NodeError(3, lacking + "; this cell has " + has);
        Start(kit.ReadInput);
        roles[kit.Text("role")](kit);
        kit.Finish(args[3] + "/samples.bin");
        Exit(0);
    }

    static void Fail(Exception error) {
        NodeError known = error as NodeError ?? new NodeError(4, error.ToString());
        Line("ERROR", new { code = known.Code, key = known.Key, reason = known.Message });
        Exit(known.Code);
    }
    /// Refuses a spec that would be misread (C-02); the harness has checked the rest.
    public static JObject ReadSpec(string path, string settings) {
        JObject spec;
        try {
            var reader = new JsonTextReader(File.OpenText(path));
            reader.DateParseHandling = DateParseHandling.None; // a string stays a string
            spec = JObject.Load(reader);
        } catch (Exception error) { throw new NodeError(2, path + ": " + error.Message, "--spec"); }
        var types = (Keys + settings).Trim().Split().ToDictionary(word => word.Split(':')[0]);
        foreach (string key in types.Keys.Union(spec.Properties().Select(entry => entry.Name)))
            if (!types.ContainsKey(key) || !Fits(spec[key], types[key].Last())
                    || key == "contract" && (long)spec[key] != 2)
                throw new NodeError(2, $"{key}: {spec[key]}, not as in {Keys + settings}", key);
        return spec;
    }

    static bool Fits(JToken token, char type) => char.IsUpper(type)
        ? token?.Type.ToString()[0] == type
        : token is JArray && token.All(item => Fits(item, char.ToUpper(type)));
    public Kit(JObject spec) {
        Spec = spec;
        node = Number("node");
        topic = Text("pattern") == "topic";
        closed = Text("loop") == "closed";
        sends = "publisher client ping".Split().Contains(Text("role"));
        long spanNs = Number("duration_ns") - Number("phase_ns"), periodNs = Number("period_ns");
        scheduled = closed ? Number("count") : Math.Max(0, (spanNs + periodNs - 1) / periodNs);
        int[] peers = Spec["peers.nodes"].Select(number => (int)number).ToArray();
        peer = peers.Length == 1 ? peers[0] : 65535;
        messages = new Messages(Spec, sends ? new[] { (int)node } : peers);
        words = new long[8 + 5 * Number("record.capacity")];
        Array.Clear(words, 0, words.Length); // touched now: no page is missing in the window
    }
    public string Text(string key) => (string)Spec[key];
    public long Number(string key) => (long)Spec[key];
    /// How many calls may be open at once.
    public int Workers => closed || topic || !sends ? 1 : (int)Number("outstanding_max");
    /// Starts a thread that does not keep the process; what it throws ends the node.
    public static Thread Start(ThreadStart action) {
        var thread = new Thread(action) { IsBackground = true };
        thread.Start();
        return thread;
    }

    void ReadInput() {
        var input = new StreamReader(Console.OpenStandardInput());
        for (string line; (line = input.ReadLine()) != null; goOrStop.Set()) {
            bool go = line.StartsWith("GO ") && long.TryParse(line.Substring(3), out startNs);
            if (go ? startNs < Now() : line != "STOP")
                throw new NodeError(2, line + "; allowed: STOP, GO and a time to come", "GO");
            if (!go) { stopNs = Now(); stop.Set(); }
        }
        Exit(5);
    }
    public void Listening(params string[] endpoints) => Line("LISTENING", new { endpoints });
    /// Looks until it is there; returns the ns that it took (C-04, C-07).
    public long Await(string what, Func<bool> isThere) {
        long beginNs = Now(), mostMs = Number("ready_timeout_ms");
        for (; !isThere(); Sleep(1000000))
            if (Now() > processStartNs + mostMs * 1000000)
                throw new NodeError(4, $"no {what} within ready_timeout_ms = {mostMs}{why}");
        return Now() - beginNs;
    }
    /// Calls until a reply comes; the first may take seconds, as much is compiled for it.
    public long Probe(Call call) => Await("reply to a probe", () => {
        byte[] message = messages.New();
        messages.Stamp(message, (ulong)node << 48 | Arrival.Probe, Now());
        probes++;
        try { return call(message, Number("ready_timeout_ms") * 1000000, 0) != null; }
        catch (IOException error) { why = "; the last one: " + error.Message; return false; }
    });
    public void Ready(int? matched, long? discovery_ns, object library, object effective,
        object guarantee) => Line("READY", new { matched, discovery_ns, library, effective,
            guarantee, startup_ns = Now() - processStartNs });
    /// A sender's window, until STOP. In a topic a call is the sending, whatever it returns.
    public void Calls(Call call) {
        goOrStop.WaitOne();
        var others = Enumerable.Range(1, Workers - 1)
            .Select(worker => Start(() => Work(call, worker))).ToList();
        Work(call, 0);
        others.ForEach(thread => thread.Join());
        Line("SENT", new { begin_ns = firstNs, end_ns = lastNs, sent, scheduled, skipped = 0 });
        stop.WaitOne();
    }

    void Work(Call call, int worker) {
        byte[] message = messages.New(), reply = null;
        long limitNs = Number("timeout_ns"), spinNs = Number("spin_ns"), dueNs, nowNs;
        long phaseNs = closed ? 0 : Number("phase_ns"), periodNs = Number("period_ns");
        long boundNs = closed ? Never : startNs + Number("duration_ns") + Number("overrun_ns");
        long most = scheduled + Number("count_beyond");
        while (true) {
            ulong seq;
            lock (schedule) {
                seq = (ulong)(node << 48 | next);
                dueNs = startNs + phaseNs + next * periodNs;
                while ((nowNs = Now()) < dueNs && stopNs == Never && next < most)
                    if (dueNs - spinNs > nowNs) Sleep(Math.Min(dueNs - spinNs - nowNs, 50000000));
                if (stopNs != Never || nowNs > boundNs || next >= most) return;
                if (next++ == scheduled) Line("COUNTED", new { });
            }
            int flags = 0;
            long beginNs = Now();
            messages.Stamp(message, seq, beginNs);
            try { reply = call(message, limitNs, worker); } catch (IOException) { flags = Failed; }
            long endNs = Now();
            if (flags == 0 && !topic)
                flags = reply == null || endNs - beginNs > limitNs ? Timeout
                    : messages.IsReply(reply, message, seq) ? 0 : Corrupt;
            lock (counts) {
                if (flags != Failed || !topic) sent++;
                if (flags == Corrupt) corrupt++;
                if (!topic && (flags == 0 || flags == Corrupt)) received++;
                firstNs = Math.Min(firstNs ?? Never, beginNs);
                lastNs = endNs;
            }
            if (flags == Timeout || flags == Failed && !topic) endNs = UnknownNs;
            Record(seq, closed ? beginNs : dueNs, beginNs, endNs, message.Length, flags);
        }
    }

    void Record(ulong seq, long intendedNs, long beginNs, long endNs, long bytes, int flags) {
        if (seq == Arrival.Unreadable) return;
        if ((sends ? intendedNs : endNs) < startNs + Number("warmup_ns")) flags |= WarmUp;
        long other = sends ? peer : (long)(seq >> 48), kind = topic ? 0 : 1;
        bytes |= other << 32 | kind << 48 | (long)flags << 56;
        Add((long)seq, intendedNs, beginNs, endNs, bytes);
    }
    public void Add(params long[] record) {
        lock (words)
            if (8 + 5 * recorded == words.Length) overflow++;
            else record.CopyTo(words, 8 + 5 * recorded++);
    }
    /// What arrived; without a sequence is what is not to be recorded.
    Arrival Arrive(byte[] message) {
        long entryNs = Now();
        Arrival found = messages.Check(message);
        found.EntryNs = entryNs;
        bool probe = (found.Seq & Arrival.Probe) == Arrival.Probe;
        if (messages.Literal) probe = entryNs < Volatile.Read(ref startNs);
        lock (counts) {
            if (found.Foreign) foreign++;
            else if (probe) probes++;
            else {
                lastArrivalNs = entryNs;
                if (found.Corrupt) corrupt++;
                if (messages.Literal) found.Seq = (ulong)(peer << 48 | received);
                if (found.Seq != Arrival.Unreadable) received++;
            }
        }
        if (found.Foreign || probe) found.Seq = Arrival.Unreadable;
        return found;
    }

    void Record(Arrival found, long beginNs, long endNs) => Record(found.Seq, UnknownNs,
        beginNs, endNs, found.Data.Length, found.Corrupt ? Corrupt : 0);
    /// A subscriber's message is in hand.
    public void Received(byte[] message) {
        Arrival found = Arrive(message);
        Record(found, found.SendNs, found.EntryNs);
    }
    /// The request, with its Reply to be handed over; null where it must not be answered.
    public Arrival Serve(byte[] request) {
        Arrival found = Arrive(request);
        if (found.Foreign || request == null) return null;
        found.Reply = messages.Reply(request);
        return found;
    }
    /// The reply was handed over.
    public void Served(Arrival request) => Record(request, request.EntryNs, Now());
    /// Returns when the drain of C-15 is over.
    public void Drain() {
        stop.WaitOne();
        long quietNs = Number("quiet_ms") * 1000000, endNs = stopNs + Number("linger_ms") * 1000000;
        for (long leftNs = 1; leftNs > 0; Sleep(leftNs))
            leftNs = Math.Min(endNs, Math.Max(lastArrivalNs, stopNs) + quietNs) - Now();
    }
    /// Writes the samples and DONE.
    public void Finish(string path) {
        const string roles = "publisher subscriber server client - - ping pong"; // C-24
        long role = Array.IndexOf(roles.Split(), Text("role"));
        words[0] = BitConverter.ToInt64(Encoding.ASCII.GetBytes("WATTWIRE"), 0);
        words[1] = 1 | 64 << 16 | 40L << 32 | role << 48 | 1L << 56;
        new[] { node, recorded, overflow, Number("payload.seed") }.CopyTo(words, 2);
        var data = new byte[64 + 40 * recorded];
        Buffer.BlockCopy(words, 0, data, 0, data.Length);
        File.WriteAllBytes(path, data);
        Line("DONE", new { sent, received, recorded, overflow, foreign, corrupt, probes });
    }
}
