package wattwire;

import com.eclipsesource.json.Json;
import com.eclipsesource.json.JsonObject;
import com.eclipsesource.json.JsonValue;
import com.eclipsesource.json.ParseException;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BiConsumer;
import java.util.regex.Pattern;

/**
 * Reads the values of a spec by key and type. The harness has checked the values; the node rejects
 * keys that it would misread (C-02).
 */
final class KeyReader {
    private static final String SETTING = "settings.";
    private static final String ALLOWED = "declared.allowed.";
    private static final String BYTE = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])";
    private static final Pattern IPV4 = Pattern.compile(BYTE + "(\\." + BYTE + "){3}");
    private final JsonObject spec;

    private KeyReader(JsonObject spec) {
        this.spec = spec;
    }

    static Spec readSpec(Path path) throws NodeException {
        JsonObject json;
        try {
            json = Json.parse(Files.readString(path)).asObject();
        } catch (IOException | ParseException | UnsupportedOperationException error) {
            throw refused("--spec", error.toString(), "a JSON object");
        }
        KeyReader keys = new KeyReader(json);
        if (keys.integer("contract") != Constants.CONTRACT)
            throw refused("contract", json.get("contract"), Constants.CONTRACT);
        Spec spec = new Spec(keys, keys.settings());
        checkAddress("host.address", spec.hostAddress);
        for (String address : spec.peersAddresses) checkAddress("peers.addresses", address);
        return spec;
    }

    /** Reads the declared settings. Rejects others. */
    private Settings settings() {
        Map<String, BiConsumer<String, JsonValue>> types = new LinkedHashMap<>();
        for (String name : texts("declared.string_settings")) types.put(name, KeyReader::asText);
        for (String name : texts("declared.integer_settings"))
            types.put(name, KeyReader::asInteger);
        for (String name : texts("declared.boolean_settings")) types.put(name, KeyReader::asFlag);
        for (String key : spec.names())
            if (key.startsWith(SETTING) && !types.containsKey(key.substring(SETTING.length())))
                throw refused(key, "an unknown setting", types.keySet());
        JsonObject values = new JsonObject();
        List<String> unsupported = new ArrayList<>();
        types.forEach(
                (name, type) -> {
                    JsonValue value = spec.get(SETTING + name);
                    type.accept(SETTING + name, value);
                    values.add(name, value);
                    if (spec.get(ALLOWED + name) == null) return;
                    var allowed = new ArrayList<JsonValue>();
                    for (JsonValue item : items(ALLOWED + name)) allowed.add(item);
                    if (!allowed.contains(value))
                        unsupported.add(name + " = " + value + " (supported: " + allowed + ")");
                });
        return new Settings(values, unsupported);
    }

    /** InetAddress would look up other texts as names of hosts. */
    private static void checkAddress(String key, String address) throws NodeException {
        if (!IPV4.matcher(address).matches()) throw refused(key, address, "an IPv4 address");
    }

    static NodeException refused(String key, Object found, Object allowed) {
        return new NodeException(
                ExitCode.BAD_SPEC, key, key + ": found " + found + "; allowed: " + allowed);
    }

    String text(String key) {
        return asText(key, spec.get(key));
    }

    long integer(String key) {
        return asInteger(key, spec.get(key));
    }

    List<String> texts(String key) {
        List<String> items = new ArrayList<>();
        for (JsonValue item : items(key)) items.add(asText(key, item));
        return List.copyOf(items);
    }

    List<Long> integers(String key) {
        List<Long> items = new ArrayList<>();
        for (JsonValue item : items(key)) items.add(asInteger(key, item));
        return List.copyOf(items);
    }

    private Iterable<JsonValue> items(String key) {
        JsonValue value = spec.get(key);
        if (value == null || !value.isArray()) throw refused(key, value, "a list");
        return value.asArray();
    }

    private static String asText(String key, JsonValue value) {
        if (value == null || !value.isString()) throw refused(key, value, "a string");
        return value.asString();
    }

    private static boolean asFlag(String key, JsonValue value) {
        if (value == null || !value.isBoolean()) throw refused(key, value, "true or false");
        return value.asBoolean();
    }

    private static long asInteger(String key, JsonValue value) {
        try {
            if (value != null && value.isNumber()) return value.asLong();
        } catch (NumberFormatException fraction) {
            // The statement below reports it.
        }
        throw refused(key, value, "an integer");
    }
}
