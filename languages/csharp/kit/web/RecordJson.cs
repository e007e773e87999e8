using System;
using System.IO;
using System.Linq;
using System.Text;
using Newtonsoft.Json.Linq;

/// Converts a record's nominal bytes to JSON and back, with LINQ to JSON: typed reading accepts Y
/// as y.
public static class RecordJson {
    /// Returns an object that the library can serialize.
    public static object From(byte[] data) {
        var from = new BinaryReader(new MemoryStream(data));
        Func<double> next = from.ReadDouble;
        return new {
            header = new { seq = $"{from.ReadUInt64()}", send_ns = $"{from.ReadInt64()}" },
            name = Encoding.UTF8.GetString(from.ReadBytes(16)).TrimEnd('\0'),
            pose = new { position = new { x = next(), y = next(), z = next() },
                orientation = new { x = next(), y = next(), z = next(), w = next() } },
            samples = new int[(data.Length - 96) / 16].Select(_ => new {
                id = from.ReadUInt32(), state = from.ReadUInt32(), value = next() }).ToArray(),
            trailer = new { seq = $"{from.ReadUInt64()}" } };
    }

    /// Returns the bytes, or null if the JSON is not a record. A name of more than 16 bytes shifts
    /// the other fields, which makes the record foreign.
    public static byte[] Bytes(JToken found) {
        try {
            JToken p = found["pose"]["position"], o = found["pose"]["orientation"];
            var to = new BinaryWriter(new MemoryStream());
            to.Write((ulong)found["header"]["seq"]);
            to.Write((long)found["header"]["send_ns"]);
            string name = (string)((JValue)found["name"]).Value;
            to.Write(Encoding.UTF8.GetBytes(name.PadRight(16, '\0')));
            foreach (var v in new[] { p["x"], p["y"], p["z"], o["x"], o["y"], o["z"], o["w"] })
                to.Write((double)v);
            foreach (JToken sample in (JArray)found["samples"]) {
                to.Write((uint)sample["id"]);
                to.Write((uint)sample["state"]);
                to.Write((double)sample["value"]);
            }
            to.Write((ulong)found["trailer"]["seq"]);
            return ((MemoryStream)to.BaseStream).ToArray();
        } catch (Exception error) when (!(error is OutOfMemoryException)) { return null; }
    }
}
