package web;

import com.eclipsesource.json.Json;
import com.eclipsesource.json.JsonArray;
import com.eclipsesource.json.JsonObject;
import com.eclipsesource.json.JsonValue;

import wattwire.Payload;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** Converts a record's nominal bytes, the kit's form, to the JSON of C-32 and back. */
public final class RecordJson {
    private static final int POSE = 32;
    private static final int SAMPLES = 88;
    private static final String[] AXES = {"x", "y", "z", "x", "y", "z", "w"};

    private RecordJson() {}

    public static String toJson(byte[] record) {
        ByteBuffer data = ByteBuffer.wrap(record).order(ByteOrder.LITTLE_ENDIAN);
        JsonObject position = new JsonObject();
        JsonObject orientation = new JsonObject();
        for (int i = 0; i < 7; i++)
            (i < 3 ? position : orientation).add(AXES[i], data.getDouble(POSE + 8 * i));
        JsonArray samples = new JsonArray();
        for (int at = SAMPLES; at < record.length - 8; at += 16)
            samples.add(
                    new JsonObject()
                            .add("id", Integer.toUnsignedLong(data.getInt(at)))
                            .add("state", Integer.toUnsignedLong(data.getInt(at + 4)))
                            .add("value", data.getDouble(at + 8)));
        return new JsonObject()
                .add("header", sequence(data.getLong(0)).add("send_ns", "" + data.getLong(8)))
                .add("name", Payload.name(record))
                .add(
                        "pose",
                        new JsonObject().add("position", position).add("orientation", orientation))
                .add("samples", samples)
                .add("trailer", sequence(data.getLong(record.length - 8)))
                .toString();
    }

    private static JsonObject sequence(long seq) {
        return new JsonObject().add("seq", Long.toUnsignedString(seq));
    }

    /** The record, or Payload.UNREADABLE: no JSON, or a field is missing or of another type. */
    public static byte[] fromJson(String text) {
        try {
            JsonObject found = Json.parse(text).asObject();
            JsonObject header = found.get("header").asObject();
            JsonObject pose = found.get("pose").asObject();
            JsonArray samples = found.get("samples").asArray();
            ByteBuffer data = Payload.record(found.get("name").asString(), samples.size());
            data.putLong(sequence(header)).putLong(8, Long.parseLong(text(header, "send_ns")));
            data.position(POSE);
            for (int i = 0; i < 7; i++) {
                JsonObject axes = pose.get(i < 3 ? "position" : "orientation").asObject();
                data.putDouble(axes.get(AXES[i]).asDouble());
            }
            for (JsonValue value : samples) {
                JsonObject sample = value.asObject();
                data.putInt(unsigned(sample.get("id")))
                        .putInt(unsigned(sample.get("state")))
                        .putDouble(sample.get("value").asDouble());
            }
            return data.putLong(sequence(found.get("trailer").asObject())).array();
        } catch (RuntimeException error) {
            return Payload.UNREADABLE;
        }
    }

    private static String text(JsonObject holder, String name) {
        return holder.get(name).asString();
    }

    private static long sequence(JsonObject holder) {
        return Long.parseUnsignedLong(text(holder, "seq"));
    }

    private static int unsigned(JsonValue number) {
        return Integer.parseUnsignedInt(number.toString());
    }
}
