using System;
using System.Collections.Generic;
using System.IO;
using System.Net;
using System.Threading;
using Newtonsoft.Json.Linq;

/// Server and pong: HttpListener, whose requests the pool of threads answers.
static class Server {
    const int PortMin = 10000, PortEnd = 32768;
    const string Path = "/rpc";

    /// The request that this thread answers, until its response was handed over.
    [ThreadStatic] static Arrival arrival;

    public static void Run(Kit kit) {
        Node.CheckLimits(kit);
        var dispatcher = new Dispatcher(new Dictionary<string, Func<JArray, object>> {
            { Node.Method(kit), parameters => Echo(kit, parameters) } });
        HttpListener listener = Started(out string address);
        long workers = kit.Number("settings.server_workers");
        if (workers == 0)
            Kit.Start(() => {
                while (true) {
                    HttpListenerContext context = listener.GetContext();
                    ThreadPool.QueueUserWorkItem(_ => Answer(kit, dispatcher, context));
                }
            });
        for (long i = 0; i < workers; i++)
            Kit.Start(() => {
                while (true)
                    Answer(kit, dispatcher, listener.GetContext());
            });
        kit.Listening(address + Path);
        Node.Ready(kit, typeof(HttpListener), null, false, "Mono-HTTPAPI/1.0");
        kit.Drain();
    }

    /// HttpListener cannot choose a port, so ports are tried.
    static HttpListener Started(out string address) {
        var random = new Random(Guid.NewGuid().GetHashCode());
        for (int left = 100; ; left--) {
            var listener = new HttpListener();
            address = $"http://127.0.0.1:{random.Next(PortMin, PortEnd)}";
            listener.Prefixes.Add(address + "/");
            try {
                listener.Start();
                return listener;
            } catch (Exception error) when (left > 0) {
                Console.Error.WriteLine($"{address}: {error.Message}; another port is tried");
            }
        }
    }

    static object Echo(Kit kit, JArray parameters) {
        string method = Node.Method(kit);
        byte[] message = parameters.Count == 1 ? Node.FromJson(method, parameters[0]) : null;
        arrival = kit.Serve(message);
        if (message == null)
            throw new Refusal(Refusal.InvalidParams, "params must be one message");
        if (arrival == null)
            throw new Refusal(Refusal.OtherRun, "the message is of another run");
        return Node.ToJson(method, arrival.Reply);
    }

    static void Answer(Kit kit, Dispatcher dispatcher, HttpListenerContext context) {
        try {
            HttpListenerResponse response = context.Response;
            var body = new byte[0];
            arrival = null;
            if (context.Request.Url.AbsolutePath != Path)
                response.StatusCode = 404;
            else if (context.Request.HttpMethod != "POST")
                response.StatusCode = 405;
            else {
                var text = new MemoryStream();
                context.Request.InputStream.CopyTo(text);
                object answer = dispatcher.Answer(text.ToArray());
                response.StatusCode = answer == null ? 204 : 200;
                response.ContentType = "application/json";
                body = answer == null ? body : Node.Text(answer);
            }
            response.ContentLength64 = body.Length;
            response.OutputStream.Write(body, 0, body.Length);
            response.Close();
            if (arrival != null)
                kit.Served(arrival);
        } catch (Exception error) when (error is HttpListenerException || error is IOException
                || error is ObjectDisposedException) {
            Console.Error.WriteLine(error.Message); // the client has left
        }
    }
}
