using System;

namespace Wattwire {
    // Receivers: subscribers, servers and pongs.
    public sealed partial class Kit {
        static readonly byte[] undecoded = { };
        long lastArrivalNs;

        /// A subscriber's message is in hand.
        public void Received(byte[] message) {
            Arrival arrival = Arrive(message);
            Record(arrival, arrival.SendNs, arrival.EntryNs);
        }

        /// The request is in hand; null is one that could not be decoded (C-32). Its Reply is to be
        /// handed over; null: it must not be answered.
        public Arrival Serve(byte[] request) {
            Arrival arrival = Arrive(request ?? undecoded);
            if (arrival.IsForeign || request == null)
                return new Arrival();
            arrival.Reply = Payload.Reply(request);
            return arrival;
        }

        /// The reply was handed over.
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
                    if (Payload.IsLiteral) { // which carries no sequence: arrivals are counted
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

        /// Of a literal, nothing but probes comes before the start (C-17).
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

        /// Returns when the drain of C-15 is over.
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
