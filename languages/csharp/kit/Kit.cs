using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Threading;
using Newtonsoft.Json.Linq;

namespace Wattwire {
    /// Returns the reply, or null at the timeout; an IOException: it was not sent. `worker` is
    /// below outstanding_max, for cells that keep a connection for each.
    public delegate object Call(object message, long timeoutNs, int worker);

    /// One node of one run: clock, schedule, records and lines. languages/csharp/README.md.
    public sealed class Kit {
        const int WarmUp = 1, Failed = 2, Timeout = 4, Corrupt = 8, UnknownPeer = 65535;
        const long Never = long.MaxValue, UnknownNs = Arrival.UnknownNs;
        static readonly string[] roleCodes = { "publisher", "subscriber", "server", "client",
            "action_server", "action_client", "ping", "pong" };
        public readonly JObject Spec;
        readonly string outFolder, role;
        readonly long processStartNs, timeoutNs, periodNs, scheduled;
        readonly bool closed, topic, sends;
        readonly int peer;
        readonly Messages messages;
        readonly Recorder recorder;
        readonly ManualResetEvent goOrStop = new ManualResetEvent(false);
        readonly ManualResetEvent stop = new ManualResetEvent(false);
        readonly object schedule = new object(), counts = new object();
        long startNs = Never, stopNs = Never, lastArrivalNs, next;
        long sent, received, foreign, corrupt, probes, firstBeginNs = Never, lastEndNs;

        /// Runs this node and ends the process. `settings` are words NAME:TYPE, type i, s or b.
        public static void Run(string[] args, string settings, string capabilities,
                Dictionary<string, Action<Kit>> roles) {
            long processStartNs = Host.Now();
            AppDomain.CurrentDomain.UnhandledException += (_, e) => Fail((Exception)e.ExceptionObject);
            Guard(() => {
                var kit = new Kit(args, settings, capabilities.Split(' '), roles, processStartNs);
                Start(kit.ReadInput);
                roles[kit.role](kit);
                kit.Finish();
            });
            Host.Exit(0);
        }

        static void Guard(Action action) {
            try { action(); } catch (Exception error) { Fail(error); }
        }

        /// A thread of this kind does not keep the process, and what it throws ends it with 4.
        public static Thread Start(Action action) {
            var thread = new Thread(() => Guard(action)) { IsBackground = true };
            thread.Start();
            return thread;
        }

        static void Fail(Exception error) {
            var known = error as NodeError ?? new NodeError(error.GetType().Name + ": " + error.Message);
            Console.Error.WriteLine(error);
            Host.Line("ERROR", new { code = known.Code, key = known.Key, reason = known.Message });
            Host.Exit(known.Code);
        }

        Kit(string[] args, string settings, string[] capabilities,
                Dictionary<string, Action<Kit>> roles, long processStartNs) {
            if (args.Length != 4 || args[0] != "--spec" || args[2] != "--out")
                throw new NodeError($"found {string.Join(" ", args)}; allowed: --spec FILE --out DIR") {
                    Code = 2, Key = "command line" };
            Spec = Wattwire.Spec.Read(args[1], settings);
            outFolder = args[3];
            this.processStartNs = processStartNs;
            role = Text("role");
            topic = Text("pattern") == "topic";
            closed = Text("loop") == "closed";
            sends = role == "publisher" || role == "client" || role == "ping";
            periodNs = Number("period_ns");
            timeoutNs = Number("timeout_ns");
            long spanNs = Number("duration_ns") - Number("phase_ns");
            scheduled = closed ? Number("count") : Math.Max(0, (spanNs + periodNs - 1) / periodNs);
            var wanted = new List<string> { "encoding." + Text("payload.encoding"), "loop." + Text("loop") };
            if (sends) wanted.Add("pacing." + Text("pacing"));
            if (!topic) wanted.Add("reply." + Text("reply"));
            if (Text("payload.literal") != "") wanted.Add("literal");
            if (sends && !topic && Workers > 1) wanted.Add("async_client");
            foreach (string name in wanted.Except(capabilities))
                throw new NodeError($"{name}; this cell has {string.Join(" ", capabilities)}") { Code = 3 };
            if (!roles.ContainsKey(role))
                throw new NodeError($"role {role}; this cell has {string.Join(" ", roles.Keys)}") { Code = 3 };
            int[] peers = Spec["peers.nodes"].Select(node => (int)node).ToArray();
            peer = peers.Length == 1 ? peers[0] : UnknownPeer;
            int[] arriving = sends ? new[] { (int)Number("node") } : peers;
            messages = Text("payload.encoding") == "record"
                ? (Messages)new RecordMessages(Spec, arriving) : new ByteMessages(Spec, arriving);
            recorder = new Recorder(Number("record.capacity"));
        }

        public string Text(string key) => (string)Spec[key];
        public long Number(string key) => (long)Spec[key];
        public bool Flag(string key) => (bool)Spec[key];

        /// How many calls may be open at once.
        public int Workers => closed || topic ? 1 : (int)Math.Min(scheduled, Number("outstanding_max"));

        void ReadInput() {
            var input = new StreamReader(Console.OpenStandardInput());
            for (string line; (line = input.ReadLine()) != null; goOrStop.Set()) {
                long now = Host.Now();
                if (line == "STOP") {
                    Volatile.Write(ref stopNs, Math.Min(stopNs, now));
                    stop.Set();
                } else if (!line.StartsWith("GO ") || !long.TryParse(line.Substring(3), out long start)
                        || start < now)
                    throw new NodeError($"found {line} at {now}; allowed: STOP, GO in the future") {
                        Code = 2, Key = "GO" };
                else
                    Volatile.Write(ref startNs, start);
            }
            Host.Exit(5);
        }

        public void Listening(params string[] endpoints) => Host.Line("LISTENING", new { endpoints });

        /// Waits for peers.count; returns the ns that it took.
        public long AwaitPeers(Func<long> matched) {
            long beginNs = Host.Now();
            for (; matched() < Number("peers.count"); Host.Sleep(1000000))
                CheckReadyTime($"matched {matched()} of {Number("peers.count")} peers");
            return Host.Now() - beginNs;
        }

        /// Calls until a reply comes (C-07); returns the ns that it took.
        public long Probe(Call call) {
            long beginNs = Host.Now();
            for (object message = messages.New(); ; Host.Sleep(5000000)) {
                messages.Stamp(message, (ulong)Number("node") << 48 | Arrival.Probe, Host.Now());
                probes++;
                try {
                    if (call(message, 250000000, 0) != null)
                        return Host.Now() - beginNs;
                } catch (IOException) { } // not there yet
                CheckReadyTime("no reply to a probe");
            }
        }

        void CheckReadyTime(string what) {
            if (Host.Now() > processStartNs + Number("ready_timeout_ms") * 1000000)
                throw new NodeError($"{what} within ready_timeout_ms = {Number("ready_timeout_ms")}");
        }

        /// `library` is name, version, build; `guarantee` delivery, ordering, overload.
        public void Ready(int? matched, long? discoveryNs, string[] library, JObject effective,
                string[] guarantee) =>
            Host.Line("READY", new { matched, startup_ns = Host.Now() - processStartNs,
                discovery_ns = discoveryNs, effective,
                library = new { name = library[0], version = library[1], build = library[2] },
                guarantee = new { delivery = guarantee[0], ordering = guarantee[1],
                    overload = guarantee[2] } });

        public void Publish(Action<object> send) =>
            Calls((message, _, __) => { send(message); return message; });

        /// The window of a sender: every message on its schedule, SENT, then until STOP.
        public void Calls(Call call) {
            goOrStop.WaitOne();
            var others = Enumerable.Range(1, Math.Max(1, Workers) - 1)
                .Select(worker => Start(() => Work(call, worker))).ToList();
            Work(call, 0);
            others.ForEach(thread => thread.Join());
            Host.Line("SENT", new { begin_ns = firstBeginNs == Never ? null : (long?)firstBeginNs,
                end_ns = firstBeginNs == Never ? null : (long?)lastEndNs, sent, scheduled, skipped = 0 });
            stop.WaitOne();
        }

        void Work(Call call, int worker) {
            object message = messages.New();
            while (Take(out ulong seq, out long intendedNs)) {
                object reply = null;
                int flags = 0;
                long beginNs = Host.Now();
                messages.Stamp(message, seq, beginNs);
                try { reply = call(message, timeoutNs, worker); } catch (IOException) { flags = Failed; }
                long endNs = Host.Now();
                if (flags == 0 && !topic && (reply == null || endNs - beginNs > timeoutNs))
                    flags = Timeout;
                else if (flags == 0 && !topic && !messages.IsReply(reply, message, seq))
                    flags = Corrupt;
                lock (counts) {
                    sent += flags == Failed ? 0 : 1;
                    received += topic || (flags & (Failed | Timeout)) != 0 ? 0 : 1;
                    corrupt += flags == Corrupt ? 1 : 0;
                    firstBeginNs = Math.Min(firstBeginNs, beginNs);
                    lastEndNs = Math.Max(lastEndNs, endNs);
                }
                if (!topic && (flags & (Failed | Timeout)) != 0)
                    endNs = UnknownNs;
                Record(seq, closed ? beginNs : intendedNs, beginNs, endNs, messages.Bytes(message), flags);
            }
        }

        /// The next slot, when it is due; false where none is left, or STOP or the overrun came.
        bool Take(out ulong seq, out long dueNs) {
            lock (schedule) {
                seq = (ulong)Number("node") << 48 | (ulong)next;
                dueNs = startNs + (closed ? 0 : Number("phase_ns") + next * periodNs);
                long spinNs = Number("spin_ns");
                for (long now; (now = Host.Now()) < dueNs && stopNs == Never; )
                    if (dueNs - spinNs > now)
                        Host.Sleep(Math.Min(dueNs - spinNs - now, 50000000));
                bool late = !closed && Host.Now() > startNs + Number("duration_ns") + Number("overrun_ns");
                return stopNs == Never && !late && next++ < scheduled;
            }
        }

        void Record(ulong seq, long intendedNs, long beginNs, long endNs, int bytes, int flags) {
            bool warm = (intendedNs == UnknownNs ? endNs : intendedNs) < startNs + Number("warmup_ns");
            recorder.Add(seq, intendedNs, beginNs, endNs, bytes, sends ? peer : (int)(seq >> 48),
                topic ? 0 : 1, flags | (warm ? WarmUp : 0));
        }

        /// What arrived, unless it is foreign or a probe; a probe's Seq is Probe.
        Arrival Arrive(object data, long entryNs) {
            Arrival found = messages.Check(data);
            lock (counts) {
                found.EntryNs = entryNs;
                if (found.Verdict == Verdict.Foreign)
                    foreign++;
                else if (messages.Literal ? entryNs < Volatile.Read(ref startNs)
                        : (found.Seq & Arrival.Probe) == Arrival.Probe && found.Seq != Arrival.Unreadable) {
                    probes++;
                    found.Seq = Arrival.Unreadable;
                } else {
                    lastArrivalNs = entryNs;
                    if (messages.Literal) found.Seq = (ulong)peer << 48 | (ulong)received;
                    if (found.Verdict == Verdict.Corrupt) corrupt++;
                    if (found.Seq != Arrival.Unreadable) received++;
                }
            }
            return found;
        }

        /// The request with its Reply to be handed over; null where it must not be answered. A
        /// request that could not be decoded is null.
        public Arrival Serve(object request) {
            Arrival found = Arrive(request, Host.Now());
            if (found.Verdict == Verdict.Foreign || request == null)
                return null;
            found.Reply = messages.Reply(request);
            return found;
        }

        public void Served(Arrival request) {
            if (request.Seq != Arrival.Unreadable)
                Record(request.Seq, UnknownNs, request.EntryNs, Host.Now(), request.Bytes,
                    request.Verdict == Verdict.Corrupt ? Corrupt : 0);
        }

        public void Received(object message) {
            Arrival found = Arrive(message, Host.Now());
            if (found.Verdict != Verdict.Foreign && found.Seq != Arrival.Unreadable)
                Record(found.Seq, UnknownNs, found.SendNs, found.EntryNs, found.Bytes,
                    found.Verdict == Verdict.Corrupt ? Corrupt : 0);
        }

        /// Returns when the drain of C-15 is over.
        public void Drain() {
            stop.WaitOne();
            for (long leftNs = 1; leftNs > 0; Host.Sleep(leftNs))
                lock (counts)
                    leftNs = Math.Min(Math.Max(lastArrivalNs, stopNs) + Number("quiet_ms") * 1000000,
                        stopNs + Number("linger_ms") * 1000000) - Host.Now();
        }

        void Finish() {
            recorder.Write(Path.Combine(outFolder, "samples.bin"), Array.IndexOf(roleCodes, role),
                (int)Number("node"), Number("payload.seed"));
            Host.Line("DONE", new { sent, received, recorded = recorder.Recorded,
                overflow = recorder.Overflow, foreign, corrupt, probes });
        }
    }

    /// Records of 40 bytes, five words each, after a header of eight (C-24, C-25).
    public sealed class Recorder {
        readonly ulong[] words;
        int taken;

        public Recorder(long capacity) {
            words = new ulong[8 + 5 * capacity];
            Array.Clear(words, 0, words.Length); // touched now, so that no page is missing later
        }

        public int Recorded => Math.Min(taken, words.Length / 5 - 1);
        public int Overflow => taken - Recorded;

        public void Add(ulong seq, long intendedNs, long beginNs, long endNs, int bytes, int peer,
                int kind, int flags) {
            long at = 8 + 5L * (Interlocked.Increment(ref taken) - 1);
            if (at >= words.Length)
                return;
            words[at] = seq;
            words[at + 1] = (ulong)intendedNs;
            words[at + 2] = (ulong)beginNs;
            words[at + 3] = (ulong)endNs;
            words[at + 4] = (uint)bytes | (ulong)peer << 32 | (ulong)kind << 48 | (ulong)flags << 56;
        }

        public void Write(string path, int role, int node, long seed) {
            words[0] = BitConverter.ToUInt64(System.Text.Encoding.ASCII.GetBytes("WATTWIRE"), 0);
            words[1] = 1UL | 64UL << 16 | 40UL << 32 | (ulong)role << 48 | 1UL << 56;
            new[] { (ulong)node, (ulong)Recorded, (ulong)Overflow, (ulong)seed }.CopyTo(words, 2);
            var data = new byte[64 + 40 * Recorded];
            Buffer.BlockCopy(words, 0, data, 0, data.Length);
            File.WriteAllBytes(path, data);
        }
    }
}
