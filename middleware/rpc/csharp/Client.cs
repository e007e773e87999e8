using System.IO;
using System.Threading;
using Newtonsoft.Json;
using Newtonsoft.Json.Linq;
using Wattwire;

/// Client and ping: JSON-RPC 2.0 over HTTP.
sealed class Client {
    readonly HttpCalls http;
    readonly string method;
    long calls;

    public static void Run(Kit kit) {
        var client = new Client(kit);
        client.http.Run(client.Call);
    }

    Client(Kit kit) {
        http = new HttpCalls(kit, "application/json");
        method = Node.Method(kit);
    }

    byte[] Call(byte[] message, long timeoutNs, int worker) {
        long id = Interlocked.Increment(ref calls);
        var request = new { jsonrpc = "2.0", id, method,
            @params = new[] { Node.ToJson(method, message) } };
        byte[] found = http.Post(Node.Text(request), timeoutNs);
        return found == null ? null : Result(found, id) ?? HttpCalls.Undecodable;
    }

    byte[] Result(byte[] body, long id) {
        try {
            var found = Node.Parse(body) as JObject;
            JToken error = found?["error"];
            if (error != null && error.Type != JTokenType.Null)
                throw new IOException("JSON-RPC error " + error.ToString(Formatting.None));
            bool mine = found != null && JToken.DeepEquals(found["id"], new JValue(id));
            return mine ? Node.FromJson(method, found["result"]) : null;
        } catch (JsonException) {
            return null;
        }
    }
}
