using System;
using System.Linq;
using System.Text;
using Newtonsoft.Json;
using Newtonsoft.Json.Linq;
using Wattwire;

/// Answers the questions of tests/toolchains/test_kits.py about the kit, one line for each line.
static class Vectors {
    static void Main() {
        for (string line; (line = Console.ReadLine()) != null; )
            Console.WriteLine(Answer(line.Split(' ')));
    }

    static string Answer(string[] words) {
        switch (words[0]) {
            case "clock": return Kit.NowNs().ToString();
            case "payload": return Hex(Made(words[1], words[4], words[5], words[2], words[3]));
            case "record":
                byte[] made = Made(words[1], "record", words[4], words[2], words[3]);
                return JsonConvert.SerializeObject(RecordJson.From(made));
            case "check":
                return Verdict(Shape(words[1], words[2], words[3], words[5]), words[4],
                    Bytes(words[6]));
            case "check-record":
                var shape = Shape(words[1], "record", words[2], words[4]);
                return Verdict(shape, words[3], Decoded(Encoding.UTF8.GetString(Bytes(words[5]))));
            case "samples": return WriteSamples(words);
            default: return ReadSpec(words[1]);
        }
    }

    static Spec Shape(string seed, string encoding, string bytes, string verify) => new Spec {
        PayloadSeed = long.Parse(seed), PayloadEncoding = encoding,
        PayloadBytes = long.Parse(bytes), PayloadLiteral = "", Verify = verify,
        Reply = "echo", ReplyLiteral = "" };

    static byte[] Made(string seed, string encoding, string bytes, string seq, string sendNs) {
        var payload = new Payload(Shape(seed, encoding, bytes, "full"), new long[0]);
        byte[] made = payload.New();
        payload.Stamp(made, 1, 2); // the next stamp must overwrite this one
        payload.Stamp(made, ulong.Parse(seq), long.Parse(sendNs));
        return made;
    }

    static byte[] Decoded(string text) {
        try {
            return RecordJson.Bytes(JToken.Parse(text));
        } catch (JsonException) {
            return null;
        }
    }

    static string Verdict(Spec shape, string node, byte[] data) {
        Arrival arrival = new Payload(shape, new[] { long.Parse(node) }).Check(data ?? new byte[0]);
        string verdict = arrival.IsForeign ? "foreign" : arrival.IsCorrupt ? "corrupt" : "ok";
        return verdict + " " + (arrival.HasSeq ? arrival.Seq.ToString() : "-");
    }

    static string WriteSamples(string[] words) {
        var samples = new Samples(long.Parse(words[5]));
        decimal[] numbers = words.Skip(6).Select(decimal.Parse).ToArray();
        for (int i = 0; i < numbers.Length; i += 8)
            samples.Add(new Sample {
                Seq = (ulong)numbers[i], IntendedNs = (long)numbers[i + 1],
                BeginNs = (long)numbers[i + 2], EndNs = (long)numbers[i + 3],
                Bytes = (uint)numbers[i + 4], Peer = (ushort)numbers[i + 5],
                Kind = (byte)numbers[i + 6], Flags = (byte)numbers[i + 7] });
        samples.Write(words[1], byte.Parse(words[2]), ushort.Parse(words[3]),
            ulong.Parse(words[4]));
        return samples.Recorded + " " + samples.Overflow;
    }

    static string ReadSpec(string path) {
        try {
            Spec.Read(path);
            return "ok";
        } catch (NodeError error) {
            return error.Key;
        }
    }

    static byte[] Bytes(string hex) => Enumerable.Range(0, hex.Length / 2)
        .Select(i => Convert.ToByte(hex.Substring(2 * i, 2), 16)).ToArray();

    static string Hex(byte[] data) => BitConverter.ToString(data).Replace("-", "").ToLower();
}
