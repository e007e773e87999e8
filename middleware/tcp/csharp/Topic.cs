using System.IO;
using System.Linq;
using Wattwire;

/// Publisher and subscriber: the publisher sends each message once to every subscriber.
static class Topic {
    public static void Publish(Kit kit) {
        long beginNs = Kit.NowNs();
        var streams = Listener.ConnectAll(kit);
        Node.Ready(kit, streams[0].Socket, streams.Count, Kit.NowNs() - beginNs);
        kit.Calls((message, _, __) => {
            int failed = streams.Count(stream => !Took(stream, message));
            if (failed > 0)
                throw new IOException($"{failed} of {streams.Count} sends to subscribers failed");
            return message;
        });
    }

    static bool Took(Stream stream, byte[] message) {
        try {
            stream.Send(Stream.Message, 0, message);
            return true;
        } catch (IOException) {
            return false;
        }
    }

    public static void Subscribe(Kit kit) {
        var listener = new Listener(kit, (_, frame) => kit.Received(frame.Payload));
        long discoveryNs = listener.AwaitPeers(kit);
        Node.Ready(kit, listener.Socket, listener.Accepted, discoveryNs);
        kit.Drain();
    }
}
