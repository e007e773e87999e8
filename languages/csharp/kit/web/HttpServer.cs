using System;
using System.IO;
using System.Net;
using System.Threading;
using Wattwire;

/// Returns the body of the response to a POST, and may set the response's status and type. The
/// server records `request` when the response has been handed over, if it has a Reply.
delegate byte[] HttpAnswer(byte[] body, HttpListenerResponse response, out Arrival request);

/// Server and pong: HttpListener; the thread pool or `server_workers` threads answer requests.
sealed class HttpServer {
    const int PortMin = 10000, PortEnd = 32768;
    readonly Kit kit;
    readonly string path;
    readonly HttpAnswer answer;

    /// Runs the whole role; `path` begins with a slash.
    public static void Run(Kit kit, string path, HttpAnswer answer) {
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

    /// Starts a listener on a free port. HttpListener cannot choose a port, so this tries ports.
    static HttpListener Started(Kit kit, out string address) {
        string scheme = kit.Spec.TlsAuthority == "" ? "http" : "https";
        var random = new Random(Guid.NewGuid().GetHashCode());
        for (int left = 100; ; left--) {
            HttpListener listener = HttpTls.Listener(kit);
            address = $"{scheme}://{kit.Spec.HostAddress}:{random.Next(PortMin, PortEnd)}";
            listener.Prefixes.Add(address + "/");
            try {
                listener.Start();
                return listener;
            } catch (Exception error) when (left > 0) {
                Console.Error.WriteLine($"{address}: {error.Message}; trying another port");
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
                var content = new MemoryStream();
                context.Request.InputStream.CopyTo(content);
                if (content.Length < context.Request.ContentLength64)
                    throw new IOException("the client closed the connection during the request");
                body = answer(content.ToArray(), response, out request);
            }
            response.ContentLength64 = body.Length;
            response.OutputStream.Write(body, 0, body.Length);
            response.Close();
            if (request.Reply != null)
                kit.Served(request);
        } catch (Exception error) when (error is HttpListenerException || error is IOException
                || error is ObjectDisposedException) {
            Console.Error.WriteLine(error.Message); // the client closed the connection
            context.Response.Abort();
        }
    }
}
