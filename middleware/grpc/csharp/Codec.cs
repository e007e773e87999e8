using System;
using Wattwire;

/// Converts the kit's nominal bytes to protobuf and back. Decode returns null if the data is not
/// such a message.
sealed class Codec {
    public readonly string Method;
    public readonly Func<byte[], byte[]> Encode, Decode;

    Codec(string method, Func<byte[], byte[]> encode, Func<byte[], byte[]> decode) {
        Method = "/wattwire.Calls/" + method;
        Encode = encode;
        Decode = message => Read(message, decode);
    }

    public static Codec Of(Kit kit) {
        string encoding = kit.Spec.PayloadEncoding;
        if (encoding == "record")
            return new Codec("Record", RecordProto.Encoded, RecordProto.Decoded);
        bool text = encoding == "text" || kit.Spec.PayloadLiteral != "";
        return new Codec(text ? "Text" : "Bytes", Field, OfField);
    }

    static byte[] Read(byte[] message, Func<byte[], byte[]> decode) {
        if (message == null)
            return null;
        try {
            return decode(message);
        } catch (FormatException) {
            return null;
        }
    }

    /// One field, number 1, of type bytes or string.
    static byte[] Field(byte[] payload) {
        var to = new ProtoWriter(payload.Length + 6);
        if (payload.Length > 0)
            to.Bytes(1, payload, payload.Length);
        return to.Done();
    }

    static byte[] OfField(byte[] message) {
        byte[] payload = new byte[0];
        for (var fields = new ProtoReader(message); fields.Next(); )
            if (fields.Number == 1)
                payload = fields.Bytes();
        return payload;
    }
}
