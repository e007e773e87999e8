using System;
using System.IO;
using System.Linq;
using System.Net;
using System.Net.Http;
using System.Net.Http.Headers;
using System.Threading;
using Wattwire;

/// The calls of a client or ping: POST requests of one HttpClient, which keeps one connection per
/// open call.
sealed class HttpCalls {
    /// Stands for a reply that cannot be decoded, which the kit counts as corrupt.
    public static readonly byte[] Undecodable = new byte[0];
    readonly Kit kit;
    readonly string address;
    readonly HttpClient http;
    readonly MediaTypeHeaderValue type;

    public HttpCalls(Kit kit, string contentType) {
        this.kit = kit;
        address = kit.Spec.PeersEndpoints.FirstOrDefault() ?? throw new NodeError(
            ExitCode.BadSpec, "none; allowed: http://…", "peers.endpoints");
        type = MediaTypeHeaderValue.Parse(contentType);
        // By default Mono's handler uses the system's proxy.
        var handler = new HttpClientHandler { UseProxy = false };
        HttpTls.Trust(kit, handler);
        http = new HttpClient(handler);
        http.Timeout = Timeout.InfiniteTimeSpan; // each call has its own timeout
        if (kit.Spec.Settings.Text("keep_alive") == "off")
            http.DefaultRequestHeaders.ConnectionClose = true;
    }

    /// Returns the body of the response, or null if none arrived in time. Throws an IOException if
    /// the call failed (C-36).
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

    /// Runs the whole role with this call.
    public void Run(Call call) {
        HttpNode.Ready(kit, typeof(HttpClient), kit.Probe(call), true, null);
        kit.Calls(call);
    }
}
