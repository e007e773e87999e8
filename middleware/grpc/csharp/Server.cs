using System;
using System.IO;
using System.Linq;
using System.Runtime.InteropServices;
using Wattwire;

/// Server and pong: threads that each take a call and answer it.
static class Server {
    const int ReadPayload = 1; // GRPC_SRM_PAYLOAD_READ_INITIAL_BYTE_BUFFER

    public static void Run(Kit kit) {
        Core.grpc_init();
        IntPtr server = Core.grpc_server_create(IntPtr.Zero, IntPtr.Zero);
        Codec codec = Codec.Of(kit);
        IntPtr method =
            Core.grpc_server_register_method(server, codec.Method, null, ReadPayload, 0);
        long workers = kit.Spec.Settings.Integer("server_workers");
        if (workers == 0)
            workers = Math.Max(4, 2 * Environment.ProcessorCount); // as Grpc.Core
        var exchanges = Enumerable.Range(0, (int)workers).Select(_ => new Exchange()).ToList();
        foreach (Exchange exchange in exchanges)
            Core.grpc_server_register_completion_queue(server, exchange.Queue, IntPtr.Zero);
        string host = kit.Spec.HostAddress;
        int port = Core.grpc_server_add_http2_port(server, $"{host}:0", Credentials(kit));
        if (port == 0)
            throw new NodeError(ExitCode.MiddlewareFailed, $"{host}: no port could be bound");
        Core.grpc_server_start(server);
        foreach (Exchange exchange in exchanges)
            Kit.Start(() => {
                while (true)
                    Answer(kit, codec, server, method, exchange);
            });
        kit.Listening($"{host}:{port}");
        Node.Ready(kit, null, workers);
        kit.Drain();
    }

    static IntPtr Credentials(Kit kit) {
        if (kit.Spec.TlsAuthority == "")
            return Core.grpc_insecure_server_credentials_create();
        var pair = new Core.Pair {
            Key = File.ReadAllText(kit.Spec.TlsKey),
            Certificate = File.ReadAllText(kit.Spec.TlsCertificate) };
        return Core.grpc_ssl_server_credentials_create(null, ref pair, (IntPtr)1, 0, IntPtr.Zero);
    }

    static void Answer(Kit kit, Codec codec, IntPtr server, IntPtr method,
            Exchange exchange) {
        int error = Core.grpc_server_request_registered_call(server, method, exchange.Call,
            exchange.Deadline, exchange.Metadata, exchange.Message, exchange.Queue, exchange.Queue,
            exchange.Queue);
        if (error != 0)
            throw new NodeError(ExitCode.MiddlewareFailed,
                $"grpc_server_request_registered_call: error {error}");
        if (!exchange.Wait())
            return;
        IntPtr call = Marshal.ReadIntPtr(exchange.Call);
        // A call that ended before a thread took it has no message.
        Arrival request = exchange.HasMessage
            ? kit.Serve(codec.Decode(exchange.TakeMessage())) : new Arrival();
        bool isAnswered = request.Reply != null;
        exchange.Add(Exchange.Op.SendMetadata);
        IntPtr sent = IntPtr.Zero;
        if (isAnswered) {
            sent = Exchange.Held(codec.Encode(request.Reply));
            exchange.Add(Exchange.Op.SendMessage, sent);
        }
        exchange.AddSentStatus(isAnswered ? Core.Ok : Core.FailedPrecondition)
            .Add(Exchange.Op.ReceiveClose, exchange.Status).Run(call);
        if (isAnswered) {
            kit.Served(request);
            Core.grpc_byte_buffer_destroy(sent);
        }
        exchange.Clear(call);
    }
}
