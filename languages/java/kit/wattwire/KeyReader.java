package wattwire;

import com.eclipsesource.json.Json;
import com.eclipsesource.json.JsonObject;
import com.eclipsesource.json.JsonValue;
import com.eclipsesource.json.ParseException;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;

/**
 * Reads the values of a spec by key and type. The harness has checked the values; the node rejects
 * keys that it would misread (C-02).
 */
final class KeyReader {
    private static final String SETTING_PREFIX = "settings.";
    private static final String BYTE = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])";
    private static final Pattern IPV4 = Pattern.compile(BYTE + "(\\." + BYTE + "){3}");
    private final JsonObject spec;

    private KeyReader(JsonObject spec) {
        this.spec = spec;
    }

    static Spec readSpec(Path path, Set<String> settings) throws NodeException {
        JsonObject json;
        try {
            json = Json.parse(Files.readString(path)).asObject();
        } catch (IOException | ParseException | UnsupportedOperationException error) {
            throw refused("--spec", error.toString(), "a JSON object");
        }
        KeyReader keys = new KeyReader(json);
        JsonObject values = new JsonObject();
        for (String key : json.names()) {
            if (!key.startsWith(SETTING_PREFIX)) continue;
            String name = key.substring(SETTING_PREFIX.length());
            if (!settings.contains(name)) throw refused(key, "an unknown setting", settings);
            values.add(name, json.get(key));
        }
        if (keys.integer("contract") != Constants.CONTRACT)
            throw refused("contract", json.get("contract"), Constants.CONTRACT);
        Spec spec = new Spec(keys, new Settings(values));
        checkAddress("host.address", spec.hostAddress);
        for (String address : spec.peersAddresses) checkAddress("peers.addresses", address);
        return spec;
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

    private static long asInteger(String key, JsonValue value) {
        try {
            if (value != null && value.isNumber()) return value.asLong();
        } catch (NumberFormatException fraction) {
            // The statement below reports it.
        }
        throw refused(key, value, "an integer");
    }
}
