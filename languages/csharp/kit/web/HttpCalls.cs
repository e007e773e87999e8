using System;
using System.IO;
using System.Linq;
using System.Net;
using System.Net.Http;
using System.Net.Http.Headers;
using System.Threading;
using Wattwire;

/// Calls of a client or a ping: POSTs of one HttpClient, which holds as many connections as calls
/// are open.
sealed class HttpCalls {
    /// A reply that cannot be decoded: a payload that nobody sent, counted as corrupt.
    public static readonly byte[] Nobodys = new byte[0];
    readonly Kit kit;
    readonly string address;
    readonly HttpClient http;
    readonly MediaTypeHeaderValue type;

    public HttpCalls(Kit kit, string contentType) {
        HttpNode.CheckLimits(kit);
        this.kit = kit;
        address = kit.Spec.PeersEndpoints.FirstOrDefault() ?? throw new NodeError(
            ExitCode.BadSpec, "none; allowed: http://…", "peers.endpoints");
        type = MediaTypeHeaderValue.Parse(contentType);
        // By default Mono's handler asks for the system's proxy.
        var handler = new HttpClientHandler { UseProxy = false };
        HttpTls.Trust(kit, handler);
        http = new HttpClient(handler);
        http.Timeout = Timeout.InfiniteTimeSpan; // calls have their own
        if (kit.Spec.Settings.Text("keep_alive") == "off")
            http.DefaultRequestHeaders.ConnectionClose = true;
    }

    /// The body of the response; null where none came in time. An IOException says that the call
    /// failed (C-36).
    public byte[] Post(byte[] body, long timeoutNs) {
        var content = new ByteArrayContent(body);
        content.Headers.ContentType = type;
        try {
            using (var limit = new CancellationTokenSource(TimeSpan.FromTicks(timeoutNs / 100)))
            using (var response =
                    http.PostAsync(address, content, limit.Token).GetAwaiter().GetResult()) {
                if (response.StatusCode != HttpStatusCode.OK)
                    throw new IOException($"HTTP status {(int)response.StatusCode}");
                return response.Content.ReadAsByteArrayAsync().GetAwaiter().GetResult();
            }
        } catch (OperationCanceledException) {
            return null;
        } catch (HttpRequestException error) {
            throw new IOException(error.GetBaseException().Message.Split('\n')[0], error);
        }
    }

    /// The whole of the role, whose calls are these.
    public void Run(Call call) {
        HttpNode.Ready(kit, typeof(HttpClient), kit.Probe(call), true, null);
        kit.Calls(call);
    }
}
