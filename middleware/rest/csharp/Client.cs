using System;
using System.IO;
using System.Linq;
using System.Net;
using System.Net.Http;
using System.Net.Http.Headers;
using System.Threading;

/// Client and ping: one HttpClient, which holds as many connections as calls are open.
static class Client {
    public static void Run(Kit kit) {
        Node.CheckLimits(kit);
        string address = kit.Spec["peers.endpoints"].Select(endpoint => (string)endpoint)
            .FirstOrDefault()
            ?? throw new NodeError(2, "none; allowed: http://…", "peers.endpoints");
        // By default Mono's handler asks for the system's proxy.
        var client = new HttpClient(new HttpClientHandler { UseProxy = false });
        client.Timeout = Timeout.InfiniteTimeSpan; // calls have their own
        if (kit.Text("settings.keep_alive") == "off")
            client.DefaultRequestHeaders.ConnectionClose = true;
        var bodies = new Bodies(kit);
        MediaTypeHeaderValue type = MediaTypeHeaderValue.Parse(bodies.ContentType);
        Call call = (message, timeoutNs, _) => {
            var content = new ByteArrayContent(bodies.Body(message));
            content.Headers.ContentType = type;
            using (var limit = new CancellationTokenSource(TimeSpan.FromTicks(timeoutNs / 100)))
                return Post(client, address, content, limit.Token, bodies);
        };
        Node.Ready(kit, typeof(HttpClient), kit.Probe(call), true, null);
        kit.Calls(call);
    }

    static byte[] Post(HttpClient client, string address, HttpContent content,
            CancellationToken limit, Bodies bodies) {
        try {
            var answer = client.PostAsync(address, content, limit);
            using (var response = answer.GetAwaiter().GetResult()) {
                byte[] body = response.Content.ReadAsByteArrayAsync().GetAwaiter().GetResult();
                // No answer and one that cannot be decoded are payloads that nobody sent.
                return response.StatusCode == HttpStatusCode.OK
                    ? bodies.Message(body) ?? new byte[0] : new byte[0];
            }
        } catch (OperationCanceledException) {
            return null;
        } catch (HttpRequestException error) {
            throw new IOException(error.Message, error);
        }
    }
}
