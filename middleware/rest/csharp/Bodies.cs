using System.Text;
using Newtonsoft.Json;
using Newtonsoft.Json.Linq;
using Wattwire;

/// What a message is as a body of HTTP, and back.
sealed class Bodies {
    readonly string encoding;
    public readonly string ContentType;

    public Bodies(Kit kit) {
        encoding = kit.Spec.PayloadEncoding;
        if (kit.Spec.PayloadLiteral != "")
            encoding = "text";
        ContentType = encoding == "bytes" ? "application/octet-stream"
            : encoding == "text" ? "text/plain; charset=utf-8" : "application/json";
    }

    public byte[] Body(byte[] message) => encoding == "record"
        ? Encoding.UTF8.GetBytes(JsonConvert.SerializeObject(RecordJson.From(message))) : message;

    /// Null where the body is no message.
    public byte[] Message(byte[] body) {
        if (encoding != "record")
            return body;
        try {
            return RecordJson.Bytes(JToken.Parse(Encoding.UTF8.GetString(body)));
        } catch (JsonException) {
            return null;
        }
    }
}
