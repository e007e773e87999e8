using System;
using System.Net;
using Wattwire;

/// REST node: HttpListener as server, HttpClient as client.
static class Node {
    static void Main(string[] args) => Kit.Run(args, new Roles {
        { "client", Ask }, { "server", Serve }, { "ping", Ask }, { "pong", Serve },
    });

    static void Ask(Kit kit) {
        var bodies = new Bodies(kit);
        var calls = new HttpCalls(kit, bodies.ContentType);
        calls.Run((message, timeoutNs, _) => {
            byte[] found = calls.Post(bodies.Body(message), timeoutNs);
            return found == null ? null : bodies.Message(found) ?? HttpCalls.Undecodable;
        });
    }

    static void Serve(Kit kit) {
        var bodies = new Bodies(kit);
        HttpServer.Run(kit, "/echo",
            (byte[] body, HttpListenerResponse response, out Arrival request) => {
                byte[] message = bodies.Message(body);
                request = kit.Serve(message);
                if (request.Reply == null) {
                    response.StatusCode = message == null ? 400 : 409;
                    return new byte[0];
                }
                response.ContentType = bodies.ContentType;
                return bodies.Body(request.Reply);
            });
    }
}
