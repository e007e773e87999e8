using System;
using System.IO;
using System.Linq;
using System.Net;
using System.Text;
using Newtonsoft.Json.Linq;

/// What a message said that arrived; of a request also the reply.
public sealed class Arrival {
    public const ulong Probe = (1UL << 48) - 1;
    public const ulong Unreadable = ulong.MaxValue - 1; // of node 65535, which there is not
    public bool Corrupt = true, Foreign;
    public ulong Seq = Unreadable;
    public long SendNs = long.MinValue, EntryNs;
    public byte[] Data, Reply;
}

/// Messages of one shape: made, stamped, checked, answered. All are bytes: of text those of its
/// characters, of a record the nominal ones in the order of C-32's table.
public sealed class Messages {
    const string Letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    public readonly bool Literal;
    readonly bool record, full;
    readonly string reply;
    readonly byte[] template, replyLiteral;
    readonly int[] nodes;
    readonly int unit, fillAt, fillEnd;
    /// `nodes` are those whose messages arrive: the peers, or a client's own.
    public Messages(JObject spec, int[] nodes) {
        this.nodes = nodes;
        record = (string)spec["payload.encoding"] == "record";
        unit = (string)spec["payload.encoding"] == "text" ? 2 : 1;
        full = (string)spec["verify"] == "full";
        reply = (string)spec["reply"];
        replyLiteral = Encoding.UTF8.GetBytes((string)spec["reply.literal"]);
        if (record && replyLiteral.Length > 16)
            throw new NodeError(3, "reply.literal: a record's name has at most 16 bytes here");
        if (record) replyLiteral = Bare(new byte[16], replyLiteral);
        template = Encoding.UTF8.GetBytes((string)spec["payload.literal"]);
        if (Literal = template.Length > 0) return;
        int size = (int)spec["payload.bytes"];
        template = new byte[record ? size / 16 * 16 : size];
        fillAt = 16 * unit;
        fillEnd = size < 24 * unit ? size : template.Length - 8 * unit;
        if (size < fillAt) throw new NodeError(3, $"payload.bytes {size}; at least {fillAt} here");
        Fill((ulong)spec["payload.seed"]);
    }

    void Fill(ulong state) {
        var words = new ulong[template.Length / 8];
        for (int i = 0; i < words.Length; i++) {
            ulong z = state = state + 0x9E3779B97F4A7C15;
            z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
            z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
            words[i] = z ^ (z >> 31);
        }
        Buffer.BlockCopy(words, 0, template, fillAt, fillEnd - fillAt);
        for (int i = fillAt; i < (record ? 32 : unit == 2 ? fillEnd : 0); i++)
            template[i] = (byte)Letters[template[i] % 64];
        var rest = new BinaryWriter(new MemoryStream(template));
        rest.Seek(32, SeekOrigin.Begin);
        for (int j = 2; record && j < 9 + (template.Length - 96) / 16; j++) {
            if (j >= 9) rest.Write(words[j] % 256 << 32 | (ulong)j - 9); // a sample's id and state
            rest.Write((int)(words[j] >> 32) / 1024.0);
        }
    }

    public byte[] New() => (byte[])template.Clone();
    public void Stamp(byte[] data, ulong seq, long sendNs) {
        if (Literal) return;
        byte[] word = Word((long)seq);
        word.CopyTo(data, 0);
        Word(sendNs).CopyTo(data, 8 * unit);
        if (fillEnd < data.Length) word.CopyTo(data, fillEnd);
    }
    byte[] Word(long value) => unit == 1 ? BitConverter.GetBytes(value)
        : Encoding.ASCII.GetBytes(IPAddress.HostToNetworkOrder(value).ToString("x16"));
    /// False where eight bytes, or sixteen lower-case digits, are not there.
    bool Get(byte[] data, int at, out long value) {
        value = 0;
        if (data.Length < at + 8 * unit) return false;
        if (unit == 1) value = BitConverter.ToInt64(data, at);
        for (int i = 15; unit == 2 && i >= 0; i--) {
            int digit = "0123456789abcdef".IndexOf((char)data[at + (i ^ 1)]);
            if (digit < 0) return false;
            value = value << 4 | (uint)digit;
        }
        return true;
    }

    bool FillIs(byte[] data, int end) {
        int i = fillAt;
        for (end = Math.Min(end, data.Length); i < end && data[i] == template[i]; ) i++;
        return i >= end;
    }
    /// Tells by C-21 what has arrived; null is what could not be decoded.
    public Arrival Check(byte[] data) {
        var found = new Arrival { Data = data ?? new byte[0] };
        if (Literal) found.Corrupt = !data.SequenceEqual(template);
        if (Literal || !Get(found.Data, 0, out long seq)) return found;
        found.Seq = (ulong)seq;
        if (Get(data, 8 * unit, out long sendNs)) found.SendNs = sendNs;
        found.Foreign = !nodes.Contains((int)(found.Seq >> 48))
            || !FillIs(data, Math.Min(fillEnd, fillAt + (record ? 16 : 8)));
        found.Corrupt = data.Length != template.Length || full && !FillIs(data, fillEnd)
            || fillEnd < data.Length && !(Get(data, fillEnd, out long trailer) && trailer == seq);
        return found;
    }

    public byte[] Reply(byte[] request) {
        if (reply != "ack") return reply == "echo" ? request : replyLiteral;
        return record ? Bare(request, new byte[0]) : request.Take(8 * unit).ToArray();
    }

    static byte[] Bare(byte[] head, byte[] name) => head.Take(16).Concat(name)
        .Concat(new byte[72 - name.Length]).Concat(head.Skip(head.Length - 8)).ToArray();
    public bool IsReply(byte[] found, byte[] sent, ulong seq) {
        if (reply != "echo" || Literal) return found.SequenceEqual(Reply(sent));
        Arrival echo = Check(found);
        return !echo.Corrupt && !echo.Foreign && echo.Seq == seq;
    }
}
