using System;
using System.Collections.Generic;
using Newtonsoft.Json;
using Newtonsoft.Json.Linq;

/// An error object for the caller.
sealed class Refusal : Exception {
    public const int ParseError = -32700, InvalidRequest = -32600, UnknownMethod = -32601;
    public const int InvalidParams = -32602, InternalError = -32603, OtherRun = -32000;
    public readonly int Code;

    public Refusal(int code, string reason) : base(reason) {
        Code = code;
    }
}

/// JSON-RPC 2.0 (https://www.jsonrpc.org/specification) without batches: finds the procedure by
/// its name, calls it with the parameters, and wraps its result or error.
sealed class Dispatcher {
    readonly Dictionary<string, Func<JArray, object>> procedures;

    public Dispatcher(Dictionary<string, Func<JArray, object>> procedures) {
        this.procedures = procedures;
    }

    /// Returns the response, or null for a notification, which is executed but not answered.
    public object Answer(byte[] text) {
        JToken id = JValue.CreateNull();
        try {
            var request = Parsed(text);
            bool wellFormed = (request["jsonrpc"] as JValue)?.Value as string == "2.0"
                && request["method"]?.Type == JTokenType.String;
            id = request["id"];
            if (!wellFormed)
                throw new Refusal(Refusal.InvalidRequest, "not a request object");
            object result = Call((string)request["method"], request["params"]);
            return id == null ? null : new { jsonrpc = "2.0", id, result };
        } catch (Refusal error) {
            return Error(id, error.Code, error.Message);
        } catch (Exception error) {
            Console.Error.WriteLine(error);
            return Error(id, Refusal.InternalError, error.GetType().Name);
        }
    }

    static object Error(JToken id, int code, string message) =>
        new { jsonrpc = "2.0", id, error = new { code, message } };

    static JObject Parsed(byte[] text) {
        JToken found;
        try {
            found = Node.Parse(text);
        } catch (JsonException error) {
            throw new Refusal(Refusal.ParseError, error.Message);
        }
        return found as JObject
            ?? throw new Refusal(Refusal.InvalidRequest, "not a request object");
    }

    object Call(string name, JToken parameters) {
        if (!procedures.TryGetValue(name, out Func<JArray, object> procedure))
            throw new Refusal(Refusal.UnknownMethod, $"{name}; known: " +
                string.Join(", ", procedures.Keys));
        return procedure(parameters as JArray
            ?? throw new Refusal(Refusal.InvalidParams, "params must be an array"));
    }
}
