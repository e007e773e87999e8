package web;

import com.eclipsesource.json.Json;
import com.eclipsesource.json.JsonArray;
import com.eclipsesource.json.JsonObject;
import com.eclipsesource.json.JsonValue;
import java.io.IOException;
import java.util.Map;
import java.util.Set;
import wattwire.Kit;

/** What cells of calls share; it is no part of the kit. */
public final class Cell {
    /** A reply that is none: the kit counts it as corrupt. */
    public static final byte[] NO_ANSWER = {};

    private Cell() {}

    /** Runs a node whose client is its ping, too, and whose server is its pong. */
    public static void run(String[] arguments, Kit.Role client, Kit.Role server,
        Set<String> settings, Set<String> capabilities) throws Exception {
        var roles = Map.of("client", client, "server", server, "ping", client, "pong", server);
        Kit.run(arguments, roles, settings, capabilities);
    }

    /** Ends the node with 3 where payloads of this run are longer than the middleware carries. */
    public static void limit(Kit kit, int bytesMax, int recordBytesMax) {
        int most = encoding(kit).equals("record") ? recordBytesMax : bytesMax;
        long found = kit.number("payload.bytes");
        if (found > most) Kit.fail(3, null, "payload.bytes " + found + "; at most " + most);
    }

    /** How payloads of this run travel: bytes, text, record; literals are text. */
    public static String encoding(Kit kit) {
        return kit.text("payload.literal").isEmpty() ? kit.text("payload.encoding") : "text";
    }

    /** Where the server is; `allowed` says how such an address looks. */
    public static String endpoint(Kit kit, String allowed) {
        JsonArray found = kit.spec.get("peers.endpoints").asArray();
        if (found.isEmpty())
            Kit.fail(2, "peers.endpoints", "peers.endpoints: found none; allowed: " + allowed);
        return found.get(0).asString();
    }

    /** Fails where the response is an error (C-36). */
    public static void checkStatus(int status) throws IOException {
        if (status != 200) throw new IOException("HTTP status " + status);
    }

    /** Tells where a server can be called. */
    public static void listening(String endpoint) {
        Kit.line("LISTENING", new JsonObject().add("endpoints", new JsonArray().add(endpoint)));
    }

    /** Threads that a pool was told to have, or that it grows by itself. */
    public static JsonValue workers(int workers) {
        return workers > 0 ? Json.value(workers) : Json.value("cached");
    }

    /** READY; `discoveryNs` is null in JSON where nothing was probed; keep_alive is added. */
    public static void ready(Kit kit, String library, String version, JsonObject effective,
        JsonValue discoveryNs) {
        String kept = kit.text("settings.keep_alive");
        effective.add("keep_alive", kept.equals("default") ? "on" : kept);
        Kit.line("READY", new JsonObject().add("startup_ns", Kit.now() - Kit.BEGIN_NS)
            .add("matched", Json.NULL).add("discovery_ns", discoveryNs)
            .add("library", new JsonObject().add("name", library).add("version", version)
                .add("build", System.getProperty("java.vm.version")))
            .add("effective", effective)
            .add("guarantee", new JsonObject().add("delivery", "reliable")
                .add("ordering", "none").add("overload", "block")));
    }
}
