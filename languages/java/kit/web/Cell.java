package web;

import com.eclipsesource.json.Json;
import com.eclipsesource.json.JsonObject;
import com.eclipsesource.json.JsonValue;

import wattwire.ExitCode;
import wattwire.Kit;
import wattwire.NodeException;
import wattwire.Ready;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** What cells of calls share; it is no part of the kit. */
public final class Cell {
    /** A reply that is none: the kit counts it as corrupt. */
    public static final byte[] NO_ANSWER = {};

    private Cell() {}

    /** Runs a node whose client is its ping, too, and whose server is its pong. */
    public static void run(
            String[] arguments,
            Kit.Role client,
            Kit.Role server,
            Set<String> settings,
            Set<String> capabilities)
            throws Exception {
        var roles = Map.of("client", client, "server", server, "ping", client, "pong", server);
        Kit.run(arguments, roles, settings, capabilities);
    }

    /** Ends the node with 3 where payloads of this run are longer than the middleware carries. */
    public static void limit(Kit kit, int bytesMax, int recordBytesMax) {
        long bytesAllowed = encoding(kit).equals("record") ? recordBytesMax : bytesMax;
        long bytes = kit.spec.payloadBytes;
        if (bytes > bytesAllowed)
            throw NodeException.unsupported("payload.bytes " + bytes + "; at most " + bytesAllowed);
    }

    /** How payloads of this run travel: bytes, text, record; literals are text. */
    public static String encoding(Kit kit) {
        return kit.spec.payloadLiteral.isEmpty() ? kit.spec.payloadEncoding : "text";
    }

    /** Where the server is; `allowed` says how such an address looks. */
    public static String endpoint(Kit kit, String allowed) {
        List<String> endpoints = kit.spec.peersEndpoints;
        if (!endpoints.isEmpty()) return endpoints.get(0);
        String reason = "peers.endpoints: found none; allowed: " + allowed;
        throw new NodeException(ExitCode.BAD_SPEC, "peers.endpoints", reason);
    }

    /** Fails where the response is an error (C-36). */
    public static void checkStatus(int status) throws IOException {
        if (status != 200) throw new IOException("HTTP status " + status);
    }

    /** Threads that a pool was told to have, or that it grows by itself. */
    public static JsonValue workers(int workers) {
        return workers > 0 ? Json.value(workers) : Json.value("cached");
    }

    /** READY; `discoveryNs` is null where nothing was probed; keep_alive is added. */
    public static void ready(
            Kit kit, String library, String version, JsonObject effective, Long discoveryNs) {
        String kept = kit.spec.settings.text("keep_alive");
        effective.add("keep_alive", kept.equals("default") ? "on" : kept);
        String build = System.getProperty("java.vm.version");
        kit.ready(
                new Ready(
                        null,
                        discoveryNs,
                        new Ready.Library(library, version, build),
                        effective,
                        new Ready.Guarantee("reliable", "none", "block")));
    }
}
