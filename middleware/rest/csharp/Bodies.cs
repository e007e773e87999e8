using System.Text;
using Newtonsoft.Json;
using Newtonsoft.Json.Linq;
using Wattwire;

/// Converts messages to HTTP bodies and back.
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

    /// Returns the message, or null if the body is not a message.
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
