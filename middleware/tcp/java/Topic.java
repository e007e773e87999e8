import wattwire.Kit;

import java.io.IOException;
import java.util.List;

/** Publisher and subscriber: the publisher sends each message once to every subscriber. */
final class Topic {
    private Topic() {}

    static void publish(Kit kit) throws Exception {
        long beginNs = Kit.now();
        List<Stream> streams = Links.connectAll(kit);
        Links.ready(kit, streams.get(0).channel, streams.size(), Kit.now() - beginNs);
        kit.calls(
                (worker, message, limitNs) -> {
                    IOException failed = null;
                    for (Stream stream : streams) {
                        try {
                            stream.send(Stream.MESSAGE, 0, message);
                        } catch (IOException error) {
                            failed = error; // the other subscribers still get the message
                        }
                    }
                    if (failed != null) throw failed;
                    return message;
                });
    }

    static void subscribe(Kit kit) throws Exception {
        Links.accept(kit, stream -> kit.served(kit.serve(stream.payload)));
    }
}
