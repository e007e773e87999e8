using System;
using System.Globalization;
using System.Linq;
using System.Net;
using System.Text;
using Newtonsoft.Json.Linq;

namespace Wattwire {
    public enum Verdict { Ok, Corrupt, Foreign }

    /// What a message said that arrived; of a request also the reply.
    public sealed class Arrival {
        public const ulong Probe = (1UL << 48) - 1;
        public const ulong Unreadable = ulong.MaxValue; // of node 65535, which there is not
        public const long UnknownNs = long.MinValue;
        public Verdict Verdict = Verdict.Corrupt;
        public ulong Seq = Unreadable, Trailer;
        public long SendNs = UnknownNs, EntryNs;
        public int Bytes;
        public object Reply;
    }

    /// Messages of one shape: made, stamped, checked, answered. One is a byte[] or a Record.
    public abstract class Messages {
        protected readonly JObject spec;
        protected object template, literalReply;
        readonly string replyKind;
        readonly bool full;
        readonly int[] nodes;

        /// `nodes` are those whose messages arrive: the peers, or a client's own.
        protected Messages(JObject spec, int[] nodes) {
            this.spec = spec;
            this.nodes = nodes;
            replyKind = (string)spec["reply"];
            full = (string)spec["verify"] == "full";
            Literal = (string)spec["payload.literal"] != "";
        }

        public bool Literal { get; }
        public abstract object New();
        public abstract int Bytes(object message);
        public abstract void Stamp(object message, ulong seq, long sendNs);
        /// Fills in what can be read; false where there is no sequence.
        protected abstract bool Read(object message, Arrival found);
        /// Compares with the template: only what tells a foreign message, or all but sequences.
        protected abstract bool FillIs(object message, bool all);
        protected abstract object Ack(object request);
        protected abstract bool Same(object reply, object due);

        public Arrival Check(object message) {
            var found = new Arrival { Bytes = message == null ? 0 : Bytes(message) };
            if (Literal && Same(message, template))
                found.Verdict = Verdict.Ok;
            if (Literal || message == null || !Read(message, found))
                return found;
            if (Array.IndexOf(nodes, (int)(found.Seq >> 48)) < 0 || !FillIs(message, false))
                found.Verdict = Verdict.Foreign;
            else if (found.Bytes == Bytes(template) && found.Trailer == found.Seq
                && (!full || FillIs(message, true)))
                found.Verdict = Verdict.Ok;
            return found;
        }

        public object Reply(object request) =>
            replyKind == "echo" ? request : replyKind == "ack" ? Ack(request) : literalReply;

        public bool IsReply(object reply, object sent, ulong seq) {
            if (replyKind != "echo" || Literal)
                return reply != null && Same(reply, Reply(sent));
            Arrival found = Check(reply);
            return found.Verdict == Verdict.Ok && found.Seq == seq;
        }

        protected ulong[] Words(int count) {
            var words = new ulong[count];
            ulong state = (ulong)spec["payload.seed"];
            for (int i = 0; i < count; i++) {
                ulong z = state = unchecked(state + 0x9E3779B97F4A7C15);
                z = unchecked((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9);
                z = unchecked((z ^ (z >> 27)) * 0x94D049BB133111EB);
                words[i] = z ^ (z >> 31);
            }
            return words;
        }

        protected byte[] Fill(int count, bool text) {
            const string alphabet =
                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
            var fill = new byte[count];
            Buffer.BlockCopy(Words((count + 7) / 8), 0, fill, 0, count);
            return text ? fill.Select(value => (byte)alphabet[value % 64]).ToArray() : fill;
        }
    }

    /// Payloads of bytes, of text (as the bytes of its characters), and literals.
    public sealed class ByteMessages : Messages {
        readonly int unit, fillAt, fillEnd;
        readonly byte[] due;

        public ByteMessages(JObject spec, int[] nodes) : base(spec, nodes) {
            unit = (string)spec["payload.encoding"] == "text" ? 2 : 1;
            literalReply = Encoding.UTF8.GetBytes((string)spec["reply.literal"]);
            template = due = Encoding.UTF8.GetBytes((string)spec["payload.literal"]);
            if (Literal)
                return;
            template = due = new byte[(int)spec["payload.bytes"]];
            fillAt = 16 * unit;
            if (due.Length < fillAt)
                throw new NodeError($"payload.bytes {due.Length}; at least {fillAt}") { Code = 3 };
            fillEnd = due.Length - (due.Length >= 24 * unit ? 8 * unit : 0);
            Fill(fillEnd - fillAt, unit == 2).CopyTo(due, fillAt);
        }

        public override object New() => due.Clone();
        public override int Bytes(object message) => ((byte[])message).Length;

        public override void Stamp(object message, ulong seq, long sendNs) {
            if (Literal)
                return;
            Put((byte[])message, 0, (long)seq);
            Put((byte[])message, 8 * unit, sendNs);
            if (fillEnd < due.Length)
                Put((byte[])message, fillEnd, (long)seq);
        }

        protected override bool Read(object message, Arrival found) {
            var data = (byte[])message;
            if (!Get(data, 0, out long value))
                return false;
            found.Seq = (ulong)value;
            found.SendNs = Get(data, 8 * unit, out long sendNs) ? sendNs : Arrival.UnknownNs;
            if (fillEnd < due.Length && !Get(data, fillEnd, out value))
                value = ~(long)found.Seq;
            found.Trailer = (ulong)value;
            return true;
        }

        protected override bool FillIs(object message, bool all) {
            var data = (byte[])message;
            int i = fillAt, end = Math.Min(data.Length, all ? fillEnd : Math.Min(fillAt + 8, fillEnd));
            while (i < end && data[i] == due[i])
                i++;
            return i >= end;
        }

        protected override object Ack(object request) {
            var reply = (byte[])request;
            Array.Resize(ref reply, Math.Min(8 * unit, reply.Length));
            return reply;
        }

        protected override bool Same(object reply, object other) =>
            ((byte[])reply).SequenceEqual((byte[])other);

        void Put(byte[] data, int at, long value) => (unit == 1 ? BitConverter.GetBytes(value)
            : Encoding.ASCII.GetBytes(Digits(value))).CopyTo(data, at);

        /// False where eight bytes, or sixteen lower-case digits, are not there.
        bool Get(byte[] data, int at, out long value) {
            value = 0;
            if (data.Length < at + 8 * unit)
                return false;
            if (unit == 1) {
                value = BitConverter.ToInt64(data, at);
                return true;
            }
            string text = Encoding.ASCII.GetString(data, at, 16);
            if (long.TryParse(text, NumberStyles.AllowHexSpecifier, null, out long found))
                value = IPAddress.NetworkToHostOrder(found);
            return text == Digits(value);
        }

        /// The low byte first.
        static string Digits(long value) => IPAddress.HostToNetworkOrder(value).ToString("x16");
    }
}
