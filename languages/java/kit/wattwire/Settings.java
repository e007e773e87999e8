package wattwire;

import com.eclipsesource.json.JsonObject;
import com.eclipsesource.json.JsonValue;

import java.util.List;

/** The values of the middleware's settings, by name. */
public final class Settings {
    private final JsonObject values;
    private final List<String> unsupported;

    /** `unsupported` describes the values that the cell does not support. */
    Settings(JsonObject values, List<String> unsupported) {
        this.values = values;
        this.unsupported = unsupported;
    }

    List<String> unsupported() {
        return unsupported;
    }

    /** Returns all settings with their requested values. */
    JsonObject requested() {
        return new JsonObject(values);
    }

    private JsonValue json(String name) {
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
