using System;
using System.Collections.Generic;
using System.Linq;
using System.Net;
using System.Net.Sockets;
using System.Threading;
using Wattwire;

/// A listening socket with a thread for each accepted connection.
sealed class Listener {
    const int Backlog = 128;
    public readonly Socket Socket;
    int accepted;

    public Listener(Kit kit, Action<Stream, Frame> handle) {
        string host = Address(kit);
        Socket = Stream.Prepared(kit);
        try {
            Socket.Bind(new IPEndPoint(IPAddress.Parse(host), 0));
            Socket.Listen(Backlog);
        } catch (SocketException error) {
            throw new NodeError(ExitCode.MiddlewareFailed, $"listen on {host}: {error.Message}");
        }
        kit.Listening($"{host}:{((IPEndPoint)Socket.LocalEndPoint).Port}");
        Kit.Start(() => {
            while (true) {
                var stream = new Stream(kit, Socket.Accept());
                Kit.Start(() => Serve(stream, handle));
            }
        });
    }

    /// The address on which this node listens: the setting, or the host's if it is empty.
    public static string Address(Kit kit) {
        string setting = kit.Spec.Settings.Text("bind_address");
        return setting == "" ? kit.Spec.HostAddress : setting;
    }

    public int Accepted => Volatile.Read(ref accepted);

    public long AwaitPeers(Kit kit) =>
        kit.Await("peers.count connections", () => Accepted >= kit.Spec.PeersCount);

    void Serve(Stream stream, Action<Stream, Frame> handle) {
        Interlocked.Increment(ref accepted);
        try {
            while (true)
                handle(stream, stream.Receive());
        } catch (System.IO.IOException) {
            stream.Socket.Close(); // the peer closed the connection
        }
    }

    /// Returns a stream to each of peers.endpoints, in their order.
    public static List<Stream> ConnectAll(Kit kit) {
        var endpoints = kit.Spec.PeersEndpoints.ToList();
        if (endpoints.Count < Math.Max(1, kit.Spec.PeersCount))
            throw new NodeError(ExitCode.BadSpec,
                $"peers.endpoints: {endpoints.Count}, not one for each peer", "peers.endpoints");
        return endpoints.Select(endpoint => Stream.Connect(kit, endpoint)).ToList();
    }
}
