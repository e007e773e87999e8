package wattwire;

import com.eclipsesource.json.JsonObject;
import com.eclipsesource.json.JsonValue;

/** The values of the middleware's settings, by name. */
public final class Settings {
    private final JsonObject values;

    Settings(JsonObject values) {
        this.values = values;
    }

    /** Returns a setting as JSON, for READY's `effective`. */
    public JsonValue json(String name) {
        JsonValue value = values.get(name);
        if (value == null) throw KeyReader.refused("settings." + name, "none", "a value");
        return value;
    }

    public String text(String name) {
        return json(name).asString();
    }

    public long integer(String name) {
        return json(name).asLong();
    }

    public boolean flag(String name) {
        return json(name).asBoolean();
    }
}
