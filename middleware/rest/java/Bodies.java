import static java.nio.charset.StandardCharsets.UTF_8;

import record.RecordJson;
import wattwire.Kit;

/** What stands in requests and responses, and its content type. */
final class Bodies {
    final String type;
    private final boolean record;

    Bodies(Kit kit) {
        record = kit.text("payload.encoding").equals("record");
        boolean text = kit.text("payload.encoding").equals("text");
        boolean characters = text || !kit.text("payload.literal").isEmpty();
        type = record ? "application/json"
            : characters ? "text/plain; charset=utf-8" : "application/octet-stream";
    }

    byte[] encode(byte[] message) {
        return record ? RecordJson.toJson(message).getBytes(UTF_8) : message;
    }

    /** The kit's message; Payload.UNREADABLE where the body is no record. */
    byte[] decode(byte[] body) {
        return record ? RecordJson.fromJson(new String(body, UTF_8)) : body;
    }
}
