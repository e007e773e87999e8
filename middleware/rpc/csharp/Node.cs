using System;
using System.Text;
using Newtonsoft.Json;
using Newtonsoft.Json.Linq;
using Wattwire;

/// RPC node: JSON-RPC 2.0 on HttpListener and HttpClient.
static class Node {
    // Strings that look like dates must remain strings.
    static readonly JsonSerializerSettings plain =
        new JsonSerializerSettings { DateParseHandling = DateParseHandling.None };

    static void Main(string[] args) => Kit.Run(args, new Roles {
        { "client", Client.Run }, { "server", Server.Run },
        { "ping", Client.Run }, { "pong", Server.Run },
    });

    /// Returns the procedure for messages of this run; literals are text.
    public static string Method(Kit kit) =>
        kit.Spec.PayloadEncoding == "record" ? "echo_record" : "echo";

    /// Converts a message to a parameter or result.
    public static object ToJson(string method, byte[] message) => method == "echo_record"
        ? RecordJson.From(message) : Encoding.UTF8.GetString(message);

    /// Returns the message, or null if the value is not a message for this procedure.
    public static byte[] FromJson(string method, JToken value) {
        if (method == "echo_record")
            return RecordJson.Bytes(value);
        return value?.Type == JTokenType.String ? Encoding.UTF8.GetBytes((string)value) : null;
    }

    public static byte[] Text(object value) =>
        Encoding.UTF8.GetBytes(JsonConvert.SerializeObject(value));

    /// Parses the text. Throws a JsonException if it is not JSON.
    public static JToken Parse(byte[] text) =>
        JsonConvert.DeserializeObject<JToken>(Encoding.UTF8.GetString(text), plain)
            ?? throw new JsonReaderException("an empty text");
}
