using System;
using System.Collections.Generic;
using System.Net;
using Newtonsoft.Json.Linq;
using Wattwire;

/// Server and pong: JSON-RPC 2.0 over HTTP, one procedure.
sealed class Server {
    /// The request that this thread is answering.
    [ThreadStatic] static Arrival arrival;
    readonly Kit kit;
    readonly string method;
    readonly Dispatcher dispatcher;

    public static void Run(Kit kit) => HttpServer.Run(kit, "/rpc", new Server(kit).Answer);

    Server(Kit kit) {
        this.kit = kit;
        method = Node.Method(kit);
        dispatcher =
            new Dispatcher(new Dictionary<string, Func<JArray, object>> { { method, Echo } });
    }

    byte[] Answer(byte[] body, HttpListenerResponse response, out Arrival request) {
        arrival = new Arrival();
        object answer = dispatcher.Answer(body);
        request = arrival;
        response.StatusCode = answer == null ? 204 : 200;
        response.ContentType = "application/json";
        return answer == null ? new byte[0] : Node.Text(answer);
    }

    object Echo(JArray parameters) {
        byte[] message = parameters.Count == 1 ? Node.FromJson(method, parameters[0]) : null;
        arrival = kit.Serve(message);
        if (message == null)
            throw new Refusal(Refusal.InvalidParams, "params must be one message");
        if (arrival.Reply == null)
            throw new Refusal(Refusal.OtherRun, "the message belongs to another run");
        return Node.ToJson(method, arrival.Reply);
    }
}
