using System;
using System.IO;
using System.Linq;

namespace Wattwire {
    /// Makes one call: returns the reply, or null at the timeout, and throws an IOException if the
    /// call failed (C-36). `worker` is below Workers, for cells with one connection per worker.
    public delegate byte[] Call(byte[] message, long timeoutNs, int worker);

    // The messages of publishers, clients and pings.
    public sealed partial class Kit {
        /// Makes calls until a reply arrives. The first call may take seconds, because its code is
        /// compiled.
        public long Probe(Call call) {
            byte[] message = Payload.New();
            ulong seq = (ulong)Spec.Node << 48 | Constants.ProbeCounter;
            string failure = "";
            return Await(() => "reply to a probe" + failure, () => {
                Payload.Stamp(message, seq, NowNs());
                probes++;
                try {
                    return call(message, Spec.ReadyTimeoutMs * MsNs, 0) != null;
                } catch (IOException error) {
                    failure = $" (last error: {error.Message})";
                    return false;
                }
            });
        }

        /// Runs a sender's window, until STOP. For topics, a call sends a message and its result is
        /// ignored.
        public void Calls(Call call) {
            window.AwaitStart();
            var others = Enumerable.Range(1, Workers - 1)
                .Select(worker => Start(() => Work(call, worker))).ToList();
            Work(call, 0);
            others.ForEach(thread => thread.Join());
            bool hasSent = lastNs > 0;
            Lines.Print("SENT", new {
                begin_ns = hasSent ? firstNs : (long?)null,
                end_ns = hasSent ? lastNs : (long?)null,
                sent, scheduled = schedule.Scheduled, skipped = 0,
            });
            window.AwaitStop();
        }

        void Work(Call call, int worker) {
            byte[] message = Payload.New();
            while (CallOnce(call, message, worker)) { }
        }

        /// Makes the next call of the schedule, or returns false if there is none.
        internal bool CallOnce(Call call, byte[] message, int worker) {
            if (!schedule.Await(out long counter, out long intendedNs, out long beginNs))
                return false;
            var sample = new Sample {
                Seq = (ulong)(Spec.Node << 48 | counter),
                IntendedNs = intendedNs,
                BeginNs = beginNs,
                Bytes = (uint)message.Length,
                Peer = peer,
            };
            Payload.Stamp(message, sample.Seq, beginNs);

            byte[] reply = null;
            var flags = SampleFlags.None;
            try {
                reply = call(message, Spec.TimeoutNs, worker);
            } catch (IOException) {
                flags = SampleFlags.Failed;
            }
            sample.EndNs = NowNs();

            if (flags == SampleFlags.None && !isTopic) {
                if (reply == null || sample.EndNs - beginNs > Spec.TimeoutNs)
                    flags = SampleFlags.Timeout;
                else if (!Payload.IsReply(reply, message, sample.Seq))
                    flags = SampleFlags.Corrupt;
            }
            RecordCall(sample, flags);
            return true;
        }

        void RecordCall(Sample sample, SampleFlags flags) {
            bool isAnswered = !isTopic
                && (flags == SampleFlags.None || flags == SampleFlags.Corrupt);
            lock (counts) {
                if (!isTopic || flags != SampleFlags.Failed)
                    sent++;
                if (isAnswered)
                    received++;
                if (flags == SampleFlags.Corrupt)
                    corrupt++;
                firstNs = Math.Min(firstNs, sample.BeginNs);
                lastNs = sample.EndNs;
                if (!isTopic && !isAnswered)
                    sample.EndNs = Constants.UnknownNs;
                Record(sample, flags, sample.IntendedNs);
            }
        }
    }
}
