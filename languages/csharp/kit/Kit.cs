using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading;
using Newtonsoft.Json.Linq;

namespace Wattwire {
    /// The function of each role of a cell.
    public sealed class Roles : Dictionary<string, Action<Kit>> { }

    /// One node of one run; ../README.md has the order of calls.
    public sealed partial class Kit {
        const long MsNs = 1000000;
        static long processStartNs;
        internal readonly Window window = new Window();
        readonly Schedule schedule;
        readonly Samples samples;
        readonly bool isTopic, sends;
        readonly ushort peer;
        readonly object counts = new object(); // lock of the fields below and of the samples
        long sent, received, foreign, corrupt, probes;
        long firstNs = Window.Never, lastNs;

        public readonly Spec Spec;
        public readonly Payload Payload;

        /// The maximum number of open calls.
        public readonly int Workers = 1;

        /// Runs this process as a node with these roles, and ends the process.
        public static void Run(string[] args, Roles roles) {
            processStartNs = NowNs();
            Lines.KeepFromChildren();
            AppDomain.CurrentDomain.UnhandledException +=
                (_, e) => Lines.Fail((Exception)e.ExceptionObject);
            if (args.Length != 4 || args[0] != "--spec" || args[2] != "--out")
                throw new NodeError(ExitCode.BadSpec,
                    "allowed: --spec FILE --out DIR and nothing else", "--spec");
            Spec spec = Spec.Read(args[1]);
            Declaration.Check(spec, roles.Keys);
            var kit = new Kit(spec);
            Start(kit.window.ReadInput);
            roles[spec.Role](kit);
            kit.Finish(args[3] + "/samples.bin");
            Libc.Exit((int)ExitCode.Done);
        }

        internal Kit(Spec spec) {
            Spec = spec;
            isTopic = spec.Pattern == "topic";
            sends = Constants.SendingRoles.Contains(spec.Role);
            peer = spec.PeersNodes.Length == 1
                ? (ushort)spec.PeersNodes[0] : Constants.UnknownPeer;
            if (sends && !isTopic && spec.Loop == "open")
                Workers = (int)spec.OutstandingMax;
            Payload = new Payload(spec, sends ? new[] { spec.Node } : spec.PeersNodes);
            schedule = new Schedule(spec, window);
            samples = new Samples(spec.RecordCapacity);
        }

        /// Nanoseconds of CLOCK_MONOTONIC.
        public static long NowNs() => Libc.NowNs();

        /// Starts a background thread; its exceptions end the node.
        public static Thread Start(ThreadStart action) {
            var thread = new Thread(action) { IsBackground = true };
            thread.Start();
            return thread;
        }

        public void Listening(params string[] endpoints) =>
            Lines.Print("LISTENING", new { endpoints });

        /// Prints READY; the last three arguments are objects with the fields of C-07. The kit adds
        /// the settings that `known` lacks, with their requested values.
        public void Ready(int? matched, long? discoveryNs, object library, object known,
                object guarantee) {
            JObject effective = JObject.FromObject(Spec.Settings.Requested);
            foreach (JProperty property in JObject.FromObject(known).Properties())
                effective[property.Name] = property.Value;
            Lines.Print("READY", new {
                matched, discovery_ns = discoveryNs, library, effective, guarantee,
                startup_ns = NowNs() - processStartNs,
            });
        }

        /// Checks the condition until it is true; returns the elapsed ns (C-04, C-07).
        public long Await(string what, Func<bool> isThere) => Await(() => what, isThere);

        long Await(Func<string> what, Func<bool> isThere) {
            long beginNs = NowNs(), limitNs = processStartNs + Spec.ReadyTimeoutMs * MsNs;
            for (; !isThere(); Libc.Sleep(MsNs))
                if (NowNs() > limitNs)
                    throw new NodeError(ExitCode.MiddlewareFailed,
                        $"no {what()} within ready_timeout_ms = {Spec.ReadyTimeoutMs}");
            return NowNs() - beginNs;
        }

        /// Stores a record; `whenNs` decides on its warm-up flag (C-13). The caller holds the lock.
        void Record(Sample sample, SampleFlags flags, long whenNs) {
            if (whenNs < window.StartNs + Spec.WarmupNs)
                flags |= SampleFlags.WarmUp;
            sample.Kind = (byte)(isTopic ? SampleKind.Message : SampleKind.Call);
            sample.Flags = (byte)flags;
            samples.Add(sample);
        }

        /// Writes the samples and prints DONE.
        void Finish(string path) {
            lock (counts) {
                byte role = (byte)Array.IndexOf(Constants.Roles, Spec.Role);
                samples.Write(path, role, (ushort)Spec.Node, (ulong)Spec.PayloadSeed);
                Lines.Print("DONE", new {
                    sent, received, recorded = samples.Recorded, overflow = samples.Overflow,
                    foreign, corrupt, probes,
                });
            }
        }
    }
}
