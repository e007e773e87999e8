using System;
using System.IO;

/// Converts a record's nominal bytes to RecordPayload of ../idl/wattwire.proto, and back.
static class RecordProto {
    const int NominalBytes = 96, NameBytes = 16, SampleBytes = 16;

    public static byte[] Encoded(byte[] data) {
        var from = new BinaryReader(new MemoryStream(data));
        var to = new ProtoWriter(2 * data.Length);
        int header = to.Begin(1);
        to.Number(1, from.ReadUInt64());
        to.Number(2, from.ReadUInt64()); // an int64 has the same bits
        to.End(header);
        byte[] name = from.ReadBytes(NameBytes);
        int nameEnd = Array.IndexOf(name, (byte)0);
        if (nameEnd != 0)
            to.Bytes(2, name, nameEnd < 0 ? NameBytes : nameEnd);
        int pose = to.Begin(3);
        for (int part = 1; part <= 2; part++) { // position, orientation
            int begin = to.Begin(part);
            for (int field = 1; field <= 2 + part; field++)
                to.Double(field, from.ReadDouble());
            to.End(begin);
        }
        to.End(pose);
        for (int left = (data.Length - NominalBytes) / SampleBytes; left > 0; left--) {
            int sample = to.Begin(4);
            to.Number(1, from.ReadUInt32());
            to.Number(2, from.ReadUInt32());
            to.Double(3, from.ReadDouble());
            to.End(sample);
        }
        int trailer = to.Begin(5);
        to.Number(1, from.ReadUInt64());
        to.End(trailer);
        return to.Done();
    }

    /// A name of more than 16 bytes shifts the other fields, which makes the record invalid.
    public static byte[] Decoded(byte[] message) {
        ulong seq = 0, sendNs = 0, trailer = 0;
        var name = new byte[0];
        var pose = new double[7];
        var samples = new BinaryWriter(new MemoryStream(message.Length));
        for (var fields = new ProtoReader(message); fields.Next(); )
            switch (fields.Number) {
                case 1:
                    for (var header = fields.Message(); header.Next(); )
                        if (header.Number == 1) seq = header.Unsigned();
                        else if (header.Number == 2) sendNs = header.Unsigned();
                    break;
                case 2: name = fields.Bytes(); break;
                case 3: ReadPose(fields.Message(), pose); break;
                case 4: ReadSample(fields.Message(), samples); break;
                case 5:
                    for (var last = fields.Message(); last.Next(); )
                        if (last.Number == 1) trailer = last.Unsigned();
                    break;
            }
        var to = new BinaryWriter(new MemoryStream());
        to.Write(seq);
        to.Write(sendNs);
        to.Write(name);
        to.Write(new byte[Math.Max(0, NameBytes - name.Length)]);
        foreach (double value in pose)
            to.Write(value);
        to.Write(((MemoryStream)samples.BaseStream).ToArray());
        to.Write(trailer);
        return ((MemoryStream)to.BaseStream).ToArray();
    }

    static void ReadPose(ProtoReader parts, double[] pose) {
        while (parts.Next()) {
            int first = parts.Number == 1 ? 0 : 3, length = parts.Number == 1 ? 3 : 4;
            if (parts.Number > 2)
                continue;
            for (var values = parts.Message(); values.Next(); )
                if (values.Number <= length)
                    pose[first + values.Number - 1] = values.Double();
        }
    }

    static void ReadSample(ProtoReader sample, BinaryWriter to) {
        uint id = 0, state = 0;
        double value = 0;
        while (sample.Next())
            switch (sample.Number) {
                case 1: id = (uint)sample.Unsigned(); break;
                case 2: state = (uint)sample.Unsigned(); break;
                case 3: value = sample.Double(); break;
            }
        to.Write(id);
        to.Write(state);
        to.Write(value);
    }
}
