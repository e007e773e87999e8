using System;
using System.IO;
using System.Linq;
using System.Text;
using Newtonsoft.Json;
using Newtonsoft.Json.Linq;

/// Answers a line for each line; tests/toolchains/test_kits.py has the questions.
static class Vectors {
    static void Main() {
        for (string line; (line = Console.ReadLine()) != null; )
            Console.WriteLine(Answer(line.Split(' ')));
    }

    static string Answer(string[] words) {
        switch (words[0]) {
            case "clock": return Kit.Now().ToString();
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
            case "samples": return Samples(words);
            default: return Spec(words[1]);
        }
    }

    static JObject Shape(string seed, string encoding, string bytes, string verify) => new JObject {
        { "payload.seed", long.Parse(seed) }, { "payload.encoding", encoding },
        { "payload.bytes", int.Parse(bytes) }, { "payload.literal", "" }, { "verify", verify },
        { "reply", "echo" }, { "reply.literal", "" } };

    static byte[] Made(string seed, string encoding, string bytes, string seq, string sendNs) {
        var messages = new Messages(Shape(seed, encoding, bytes, "full"), new int[0]);
        byte[] made = messages.New();
        messages.Stamp(made, ulong.Parse(seq), long.Parse(sendNs));
        return made;
    }

    static byte[] Decoded(string text) {
        try {
            return RecordJson.Bytes(JToken.Parse(text));
        } catch (JsonException) {
            return null;
        }
    }

    static string Verdict(JObject shape, string node, byte[] data) {
        Arrival found = new Messages(shape, new[] { int.Parse(node) }).Check(data);
        string verdict = found.Foreign ? "foreign" : found.Corrupt ? "corrupt" : "ok";
        return verdict + " " + (found.Seq == Arrival.Unreadable ? "-" : found.Seq.ToString());
    }

    static string Samples(string[] words) {
        string[] roles = "publisher subscriber server client - - ping pong".Split();
        JObject spec = Shape(words[4], "bytes", "16", "full");
        foreach (string key in "period_ns duration_ns phase_ns count".Split())
            spec[key] = 1;
        spec["role"] = roles[int.Parse(words[2])];
        spec["node"] = long.Parse(words[3]);
        spec["record.capacity"] = long.Parse(words[5]);
        spec["peers.nodes"] = new JArray();
        var kit = new Kit(spec);
        var numbers = words.Skip(6).Select(decimal.Parse).ToArray();
        for (int i = 0; i < numbers.Length; i += 8) {
            long bits = (long)numbers[i + 5] << 32 | (long)numbers[i + 6] << 48;
            kit.Add((long)(ulong)numbers[i], (long)numbers[i + 1], (long)numbers[i + 2],
                (long)numbers[i + 3], (long)numbers[i + 4] | bits | (long)numbers[i + 7] << 56);
        }
        kit.Finish(words[1]); // its DONE goes to a descriptor that is not open here
        byte[] file = File.ReadAllBytes(words[1]);
        return BitConverter.ToUInt64(file, 32 - 8) + " " + BitConverter.ToUInt64(file, 32);
    }

    static string Spec(string path) {
        try {
            Kit.ReadSpec(path, "");
            return "ok";
        } catch (NodeError error) {
            return error.Key;
        }
    }

    static byte[] Bytes(string hex) => Enumerable.Range(0, hex.Length / 2)
        .Select(i => Convert.ToByte(hex.Substring(2 * i, 2), 16)).ToArray();

    static string Hex(byte[] data) => BitConverter.ToString(data).Replace("-", "").ToLower();
}
