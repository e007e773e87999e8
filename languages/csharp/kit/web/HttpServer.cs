using System;
using System.IO;
using System.Net;
using System.Threading;
using Wattwire;

/// Returns the body of the response to a POST, whose status and type it may set. `request` is what
/// is recorded once that was handed over, if it has a Reply.
delegate byte[] HttpAnswer(byte[] body, HttpListenerResponse response, out Arrival request);

/// Server and pong: HttpListener, whose requests the pool of threads answers.
sealed class HttpServer {
    const int PortMin = 10000, PortEnd = 32768;
    readonly Kit kit;
    readonly string path;
    readonly HttpAnswer answer;

    /// The whole of the role; `path` begins with a slash.
    public static void Run(Kit kit, string path, HttpAnswer answer) {
        HttpNode.CheckLimits(kit);
        var server = new HttpServer(kit, path, answer);
        HttpListener listener = Started(kit, out string address);
        server.Begin(listener, kit.Spec.Settings.Integer("server_workers"));
        kit.Listening(address + path);
        HttpNode.Ready(kit, typeof(HttpListener), null, false, "Mono-HTTPAPI/1.0");
        kit.Drain();
    }

    HttpServer(Kit kit, string path, HttpAnswer answer) {
        this.kit = kit;
        this.path = path;
        this.answer = answer;
    }

    /// HttpListener cannot choose a port, so ports are tried.
    static HttpListener Started(Kit kit, out string address) {
        string scheme = kit.Spec.TlsAuthority == "" ? "http" : "https";
        var random = new Random(Guid.NewGuid().GetHashCode());
        for (int left = 100; ; left--) {
            HttpListener listener = HttpTls.Listener(kit);
            address = $"{scheme}://127.0.0.1:{random.Next(PortMin, PortEnd)}";
            listener.Prefixes.Add(address + "/");
            try {
                listener.Start();
                return listener;
            } catch (Exception error) when (left > 0) {
                Console.Error.WriteLine($"{address}: {error.Message}; another port is tried");
            }
        }
    }

    void Begin(HttpListener listener, long workers) {
        if (workers == 0)
            Kit.Start(() => {
                while (true) {
                    HttpListenerContext context = listener.GetContext();
                    ThreadPool.QueueUserWorkItem(_ => Answer(context));
                }
            });
        for (long i = 0; i < workers; i++)
            Kit.Start(() => {
                while (true)
                    Answer(listener.GetContext());
            });
    }

    void Answer(HttpListenerContext context) {
        try {
            HttpListenerResponse response = context.Response;
            var request = new Arrival();
            var body = new byte[0];
            if (context.Request.Url.AbsolutePath != path)
                response.StatusCode = 404;
            else if (context.Request.HttpMethod != "POST")
                response.StatusCode = 405;
            else {
                var found = new MemoryStream();
                context.Request.InputStream.CopyTo(found);
                if (found.Length < context.Request.ContentLength64)
                    throw new IOException("a request that ends early: its client has left");
                body = answer(found.ToArray(), response, out request);
            }
            response.ContentLength64 = body.Length;
            response.OutputStream.Write(body, 0, body.Length);
            response.Close();
            if (request.Reply != null)
                kit.Served(request);
        } catch (Exception error) when (error is HttpListenerException || error is IOException
                || error is ObjectDisposedException) {
            Console.Error.WriteLine(error.Message); // the client has left
            context.Response.Abort();
        }
    }
}
