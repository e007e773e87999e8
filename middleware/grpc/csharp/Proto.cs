using System;

/// Writes fields of protobuf's wire format.
sealed class ProtoWriter {
    byte[] data;
    int at;

    public ProtoWriter(int bytes) {
        data = new byte[bytes];
    }

    public byte[] Done() {
        Array.Resize(ref data, at);
        return data;
    }

    /// Omits zeros, as protobuf's own writers do.
    public void Number(int field, ulong value) {
        if (value == 0)
            return;
        Varint((ulong)field << 3);
        Varint(value);
    }

    public void Double(int field, double value) {
        if (value == 0)
            return;
        Varint((ulong)field << 3 | 1);
        BitConverter.GetBytes(value).CopyTo(Room(8), at);
        at += 8;
    }

    public void Bytes(int field, byte[] value, int length) {
        Varint((ulong)field << 3 | 2);
        Varint((ulong)length);
        Buffer.BlockCopy(value, 0, Room(length), at, length);
        at += length;
    }

    /// Begins an embedded message of less than 128 bytes; pass the result to End.
    public int Begin(int field) {
        Varint((ulong)field << 3 | 2);
        Varint(0);
        return at;
    }

    public void End(int begin) => data[begin - 1] = (byte)(at - begin);

    void Varint(ulong value) {
        Room(10);
        for (; value > 127; value >>= 7)
            data[at++] = (byte)(value | 128);
        data[at++] = (byte)value;
    }

    byte[] Room(int bytes) {
        if (at + bytes > data.Length)
            Array.Resize(ref data, 2 * (at + bytes));
        return data;
    }
}

/// Reads these fields; throws a FormatException if the data is invalid or has another type.
sealed class ProtoReader {
    readonly byte[] data;
    readonly int end;
    int at, type, from;
    ulong word;

    public ProtoReader(byte[] data) : this(data, 0, data.Length) {}

    ProtoReader(byte[] data, int begin, int end) {
        this.data = data;
        at = begin;
        this.end = end;
    }

    public int Number { get; private set; }

    public bool Next() {
        if (at == end)
            return false;
        ulong key = Varint();
        if (key < 8 || key > uint.MaxValue)
            throw new FormatException($"{key} is no number of a field with its type");
        Number = (int)(key >> 3);
        type = (int)(key & 7);
        if (type == 0)
            word = Varint();
        else if (type == 1 || type == 2 || type == 5)
            Take(type == 2 ? Varint() : type == 1 ? 8UL : 4UL);
        else
            throw new FormatException($"type {type} of field {Number}");
        return true;
    }

    public ulong Unsigned() => Of(0).word;
    public double Double() => BitConverter.ToDouble(data, Of(1).from);
    public ProtoReader Message() => new ProtoReader(data, Of(2).from, at);

    public byte[] Bytes() {
        var found = new byte[at - Of(2).from];
        Buffer.BlockCopy(data, from, found, 0, found.Length);
        return found;
    }

    ProtoReader Of(int wanted) => type == wanted ? this
        : throw new FormatException($"field {Number} has type {type}, not {wanted}");

    void Take(ulong bytes) {
        if (bytes > (ulong)(end - at))
            throw new FormatException($"field {Number} ends behind its message");
        from = at;
        at += (int)bytes;
    }

    ulong Varint() {
        ulong value = 0;
        for (int shift = 0; shift < 70 && at < end; shift += 7) {
            value |= (ulong)(data[at] & 127) << shift;
            if (data[at++] < 128)
                return value;
        }
        throw new FormatException("a number without an end");
    }
}
