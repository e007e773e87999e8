using System;
using System.Collections.Generic;
using System.Globalization;
using System.Linq;
using System.Text;
using Newtonsoft.Json;
using Newtonsoft.Json.Linq;

namespace Wattwire {
    [JsonObject(ItemRequired = Required.Always)] public abstract class Part { }
    public sealed class Header : Part { public ulong seq; public long send_ns; }
    public class Vector : Part { public double x, y, z; }
    public sealed class Quaternion : Vector { public double w; }
    public sealed class Pose : Part { public Vector position; public Quaternion orientation; }
    public sealed class Sample : Part { public uint id, state; public double value; }
    public sealed class Trailer : Part { public ulong seq; }

    /// The record of C-32 with its names; a cell whose types are generated copies from and to it.
    public sealed class Record : Part {
        public Header header = new Header();
        public string name = "";
        public Pose pose = new Pose { position = new Vector(), orientation = new Quaternion() };
        public Sample[] samples = new Sample[0];
        public Trailer trailer = new Trailer();

        public string ToJson() => JsonConvert.SerializeObject(this, new StrictJson());

        /// Null where the text is no such record.
        public static Record FromJson(string text) {
            try {
                return JsonConvert.DeserializeObject<Record>(text, new StrictJson());
            } catch (Exception) {
                return null;
            }
        }

        internal IEnumerable<double> Numbers() {
            Vector p = pose.position;
            Quaternion o = pose.orientation;
            return new[] { p.x, p.y, p.z, o.x, o.y, o.z, o.w }
                .Concat(samples.SelectMany(s => new[] { s.id, s.state, s.value }));
        }
    }

    /// 64-bit numbers are strings in JSON; and the library would take 5 for "5", and 0.5 for 0.
    sealed class StrictJson : JsonConverter {
        static readonly CultureInfo plain = CultureInfo.InvariantCulture;

        public override bool CanConvert(Type type) => type.IsPrimitive || type == typeof(string);

        public override void WriteJson(JsonWriter writer, object value, JsonSerializer _) =>
            writer.WriteValue(value is ulong || value is long ? Convert.ToString(value, plain) : value);

        public override object ReadJson(JsonReader reader, Type type, object _, JsonSerializer __) {
            if (type == typeof(double))
                return reader.Value is long ? (long)reader.Value : (double)reader.Value;
            if (type == typeof(uint))
                return checked((uint)(long)reader.Value);
            var text = (string)reader.Value;
            return type == typeof(string) ? text : type == typeof(ulong)
                ? (object)ulong.Parse(text, NumberStyles.None, plain)
                : long.Parse(text, NumberStyles.AllowLeadingSign, plain);
        }
    }

    public sealed class RecordMessages : Messages {
        readonly Record due;

        public RecordMessages(JObject spec, int[] nodes) : base(spec, nodes) {
            literalReply = new Record { name = (string)spec["reply.literal"] };
            template = due = (Record)New();
        }

        public override object New() {
            ulong[] words = Words(9 + ((int)spec["payload.bytes"] - 96) / 16);
            double[] v = words.Select(word => (int)(word >> 32) / 1024.0).ToArray();
            var made = new Record { name = Encoding.ASCII.GetString(Fill(16, true)) };
            made.pose.position = new Vector { x = v[2], y = v[3], z = v[4] };
            made.pose.orientation = new Quaternion { x = v[5], y = v[6], z = v[7], w = v[8] };
            made.samples = v.Skip(9).Select((value, i) => new Sample {
                id = (uint)i, state = (uint)(words[9 + i] % 256), value = value }).ToArray();
            return made;
        }

        public override int Bytes(object message) => 96 + 16 * ((Record)message).samples.Length;

        public override void Stamp(object message, ulong seq, long sendNs) {
            var record = (Record)message;
            record.header.seq = record.trailer.seq = seq;
            record.header.send_ns = sendNs;
        }

        protected override bool Read(object message, Arrival found) {
            var record = (Record)message;
            found.Seq = record.header.seq;
            found.SendNs = record.header.send_ns;
            found.Trailer = record.trailer.seq;
            return true;
        }

        protected override bool FillIs(object message, bool all) => all
            ? ((Record)message).Numbers().SequenceEqual(due.Numbers())
            : ((Record)message).name == due.name;

        protected override object Ack(object request) {
            var record = (Record)request;
            return new Record { header = record.header, trailer = record.trailer };
        }

        protected override bool Same(object reply, object due) =>
            ((Record)reply).ToJson() == ((Record)due).ToJson();
    }
}
