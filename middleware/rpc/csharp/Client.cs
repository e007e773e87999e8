using System;
using System.IO;
using System.Linq;
using System.Net;
using System.Net.Http;
using System.Net.Http.Headers;
using System.Threading;
using Newtonsoft.Json;
using Newtonsoft.Json.Linq;

/// Client and ping: JSON-RPC 2.0 by one HttpClient, which holds as many connections as calls are
/// open.
sealed class Client {
    static readonly byte[] nobodys = new byte[0]; // counted as corrupt
    readonly HttpClient http;
    readonly string address, method;
    long calls;

    public static void Run(Kit kit) {
        Node.CheckLimits(kit);
        var client = new Client(kit);
        Node.Ready(kit, typeof(HttpClient), kit.Probe(client.Call), true, null);
        kit.Calls(client.Call);
    }

    Client(Kit kit) {
        address = kit.Spec["peers.endpoints"].Select(endpoint => (string)endpoint)
            .FirstOrDefault()
            ?? throw new NodeError(2, "none; allowed: http://…", "peers.endpoints");
        method = Node.Method(kit);
        // By default Mono's handler asks for the system's proxy.
        http = new HttpClient(new HttpClientHandler { UseProxy = false });
        http.Timeout = Timeout.InfiniteTimeSpan; // calls have their own
        if (kit.Text("settings.keep_alive") == "off")
            http.DefaultRequestHeaders.ConnectionClose = true;
    }

    byte[] Call(byte[] message, long timeoutNs, int worker) {
        long id = Interlocked.Increment(ref calls);
        var request = new { jsonrpc = "2.0", id, method,
            @params = new[] { Node.ToJson(method, message) } };
        var content = new ByteArrayContent(Node.Text(request));
        content.Headers.ContentType = new MediaTypeHeaderValue("application/json");
        try {
            using (var limit = new CancellationTokenSource(TimeSpan.FromTicks(timeoutNs / 100)))
            using (var response =
                    http.PostAsync(address, content, limit.Token).GetAwaiter().GetResult()) {
                byte[] body = response.Content.ReadAsByteArrayAsync().GetAwaiter().GetResult();
                return response.StatusCode == HttpStatusCode.OK ? Result(body, id) : nobodys;
            }
        } catch (OperationCanceledException) {
            return null;
        } catch (HttpRequestException error) {
            throw new IOException(error.Message, error);
        }
    }

    byte[] Result(byte[] body, long id) {
        try {
            var found = Node.Parse(body) as JObject;
            bool mine = found != null && JToken.DeepEquals(found["id"], new JValue(id));
            return (mine ? Node.FromJson(method, found["result"]) : null) ?? nobodys;
        } catch (JsonException) {
            return nobodys;
        }
    }
}
