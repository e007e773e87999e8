using System;
using System.Net;
using System.Threading;

/// Server and pong: HttpListener, whose requests the pool of threads answers.
static class Server {
    const int PortMin = 10000, PortEnd = 32768;

    public static void Run(Kit kit) {
        Node.CheckLimits(kit);
        HttpListener listener = Started(out string address);
        var bodies = new Bodies(kit);
        long workers = kit.Number("settings.server_workers");
        if (workers == 0)
            Kit.Start(() => {
                while (true) {
                    HttpListenerContext context = listener.GetContext();
                    ThreadPool.QueueUserWorkItem(_ => Answer(kit, bodies, context));
                }
            });
        for (long i = 0; i < workers; i++)
            Kit.Start(() => {
                while (true)
                    Answer(kit, bodies, listener.GetContext());
            });
        kit.Listening(address + "echo");
        Node.Ready(kit, typeof(HttpListener), null, false, "Mono-HTTPAPI/1.0");
        kit.Drain();
    }

    /// HttpListener cannot choose a port, so ports are tried.
    static HttpListener Started(out string address) {
        var random = new Random(Guid.NewGuid().GetHashCode());
        for (int left = 100; ; left--) {
            var listener = new HttpListener();
            address = $"http://127.0.0.1:{random.Next(PortMin, PortEnd)}/";
            listener.Prefixes.Add(address);
            try {
                listener.Start();
                return listener;
            } catch (Exception error) when (left > 0) {
                Console.Error.WriteLine($"{address}: {error.Message}; another port is tried");
            }
        }
    }

    static void Answer(Kit kit, Bodies bodies, HttpListenerContext context) {
        try {
            HttpListenerRequest request = context.Request;
            HttpListenerResponse response = context.Response;
            Arrival arrival = null;
            if (request.Url.AbsolutePath != "/echo")
                response.StatusCode = 404;
            else if (request.HttpMethod != "POST")
                response.StatusCode = 405;
            else {
                byte[] message = bodies.Message(Bodies.ReadAll(request.InputStream));
                arrival = kit.Serve(message);
                response.StatusCode = arrival != null ? 200 : message == null ? 400 : 409;
            }
            byte[] body = arrival == null ? new byte[0] : bodies.Body(arrival.Reply);
            if (arrival != null)
                response.ContentType = bodies.ContentType;
            response.ContentLength64 = body.Length;
            response.OutputStream.Write(body, 0, body.Length);
            response.Close();
            if (arrival != null)
                kit.Served(arrival);
        } catch (Exception error) when (error is HttpListenerException || IsOfSocket(error)) {
            Console.Error.WriteLine(error.Message); // the client has left
        }
    }

    static bool IsOfSocket(Exception error) =>
        error is System.IO.IOException || error is ObjectDisposedException;
}
