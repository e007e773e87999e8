using System;
using System.IO;
using System.Linq;
using System.Runtime.InteropServices;
using Wattwire;

/// Client and ping: one channel, and an exchange for each call that may be open.
sealed class Client {
    const uint PropagateNothing = 0;
    readonly string address;
    readonly Codec codec;
    readonly bool keeps;
    readonly Exchange[] exchanges;
    readonly IntPtr credentials;
    IntPtr channel, registered;

    public static void Run(Kit kit) {
        Core.grpc_init();
        var client = new Client(kit);
        Node.Ready(kit, kit.Probe(client.Call), kit.Spec.Settings.Integer("server_workers"));
        kit.Calls(client.Call);
    }

    Client(Kit kit) {
        address = kit.Spec.PeersEndpoints.FirstOrDefault() ?? throw new NodeError(
            ExitCode.BadSpec, "none; allowed: HOST:PORT", "peers.endpoints");
        codec = Codec.Of(kit);
        keeps = kit.Spec.Settings.Text("keep_alive") != "off";
        string authority = kit.Spec.TlsAuthority;
        credentials = authority == "" ? Core.grpc_insecure_credentials_create()
            : Core.grpc_ssl_credentials_create(
                File.ReadAllText(authority), IntPtr.Zero, IntPtr.Zero, IntPtr.Zero);
        exchanges = new Exchange[kit.Workers];
        for (int worker = 0; worker < exchanges.Length; worker++)
            exchanges[worker] = new Exchange();
        channel = Opened(out registered);
    }

    IntPtr Opened(out IntPtr call) {
        IntPtr opened = Core.grpc_channel_create(address, credentials, IntPtr.Zero);
        call = Core.grpc_channel_register_call(opened, codec.Method, null, IntPtr.Zero);
        return opened;
    }

    byte[] Call(byte[] message, long timeoutNs, int worker) {
        if (keeps)
            return Call(channel, registered, message, timeoutNs, exchanges[worker]);
        IntPtr own = Opened(out IntPtr call);
        try {
            return Call(own, call, message, timeoutNs, exchanges[worker]);
        } finally {
            Core.grpc_channel_destroy(own);
        }
    }

    byte[] Call(IntPtr channel, IntPtr registered, byte[] message, long timeoutNs,
            Exchange exchange) {
        IntPtr sent = Exchange.Held(codec.Encode(message));
        IntPtr call = Core.grpc_channel_create_registered_call(channel, IntPtr.Zero,
            PropagateNothing, exchange.Queue, registered, Core.Time.At(Kit.NowNs() + timeoutNs),
            IntPtr.Zero);
        exchange.Add(Exchange.Op.SendMetadata).Add(Exchange.Op.SendMessage, sent)
            .Add(Exchange.Op.SendClose).Add(Exchange.Op.ReceiveMetadata, exchange.Metadata)
            .Add(Exchange.Op.ReceiveMessage, exchange.Message).AddReceivedStatus().Run(call);
        int status = Marshal.ReadInt32(exchange.Status);
        byte[] reply = codec.Decode(exchange.TakeMessage());
        bool failed = status != Core.Ok && status != Core.DeadlineExceeded;
        string details = failed ? exchange.TakeDetails() : null;
        exchange.Clear(call);
        Core.grpc_byte_buffer_destroy(sent);
        if (failed)
            throw new IOException($"gRPC status {status}: {details}");
        // The kit counts a reply that cannot be decoded as corrupt.
        return status == Core.DeadlineExceeded ? null : reply ?? new byte[0];
    }
}
