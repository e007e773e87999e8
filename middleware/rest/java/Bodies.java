import static java.nio.charset.StandardCharsets.UTF_8;

import wattwire.Kit;

import web.Cell;
import web.RecordJson;

import java.util.Map;

/** The bodies of requests and responses, and their content type. */
final class Bodies {
    final String type;
    private final boolean record;

    Bodies(Kit kit) {
        record = Cell.encoding(kit).equals("record");
        type =
                Map.of(
                                "record",
                                "application/json",
                                "text",
                                "text/plain; charset=utf-8",
                                "bytes",
                                "application/octet-stream")
                        .get(Cell.encoding(kit));
    }

    byte[] encode(byte[] message) {
        return record ? RecordJson.toJson(message).getBytes(UTF_8) : message;
    }

    /** Returns the kit's message, or Payload.UNREADABLE if the body is not a record. */
    byte[] decode(byte[] body) {
        return record ? RecordJson.fromJson(new String(body, UTF_8)) : body;
    }
}
