using System;

namespace Wattwire {
    // The arrivals of subscribers, servers and pongs.
    public sealed partial class Kit {
        static readonly byte[] undecoded = { };
        long lastArrivalNs;

        /// Records a subscriber's message.
        public void Received(byte[] message) {
            Arrival arrival = Arrive(message);
            Record(arrival, arrival.SendNs, arrival.EntryNs);
        }

        /// Takes a request; null stands for a request that could not be decoded (C-32). Hand over
        /// the Reply of the result; if it is null, the request must not be answered.
        public Arrival Serve(byte[] request) {
            Arrival arrival = Arrive(request ?? undecoded);
            if (arrival.IsForeign || request == null)
                return new Arrival();
            arrival.Reply = Payload.Reply(request);
            return arrival;
        }

        /// Records that the reply was handed over.
        public void Served(Arrival request) => Record(request, request.EntryNs, NowNs());

        Arrival Arrive(byte[] message) {
            long entryNs = NowNs();
            Arrival arrival = Payload.Check(message);
            arrival.EntryNs = entryNs;
            lock (counts) {
                if (arrival.IsForeign) {
                    foreign++;
                } else if (IsProbe(arrival)) {
                    probes++;
                } else {
                    lastArrivalNs = entryNs;
                    if (arrival.IsCorrupt)
                        corrupt++;
                    if (Payload.IsLiteral) { // literals carry no sequence, so they are numbered
                        arrival.HasSeq = true;
                        arrival.Seq = (ulong)peer << 48 | (ulong)received;
                    }
                    arrival.IsRecorded = arrival.HasSeq;
                    if (arrival.HasSeq)
                        received++;
                }
            }
            return arrival;
        }

        /// Returns whether the arrival is a probe; before the start, every literal is (C-17).
        bool IsProbe(Arrival arrival) => Payload.IsLiteral
            ? arrival.EntryNs < window.StartNs
            : arrival.HasSeq
                && (arrival.Seq & Constants.ProbeCounter) == Constants.ProbeCounter;

        void Record(Arrival arrival, long beginNs, long endNs) {
            if (!arrival.IsRecorded)
                return;
            var sample = new Sample {
                Seq = arrival.Seq,
                IntendedNs = Constants.UnknownNs,
                BeginNs = beginNs,
                EndNs = endNs,
                Bytes = (uint)arrival.Bytes,
                Peer = (ushort)(arrival.Seq >> 48),
            };
            lock (counts)
                Record(sample, arrival.IsCorrupt ? SampleFlags.Corrupt : SampleFlags.None, endNs);
        }

        /// Waits for STOP, and then for quiet or linger (C-15).
        public void Drain() {
            window.AwaitStop();
            long stopNs = window.StopNs, quietNs = Spec.QuietMs * MsNs;
            long lingerEndNs = stopNs + Spec.LingerMs * MsNs;
            long leftNs;
            do {
                long quietEndNs = Math.Max(lastArrivalNs, stopNs) + quietNs;
                leftNs = Math.Min(lingerEndNs, quietEndNs) - NowNs();
                Libc.Sleep(leftNs);
            } while (leftNs > 0);
        }
    }
}
