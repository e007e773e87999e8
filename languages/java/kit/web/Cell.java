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

/** Code that cells of calls share; it is not part of the kit. */
public final class Cell {
    /** Stands for an invalid reply, which the kit counts as corrupt. */
    public static final byte[] NO_ANSWER = {};

    private Cell() {}

    /** Runs a node that uses its client also as ping, and its server also as pong. */
    public static void run(String[] arguments, Kit.Role client, Kit.Role server) throws Exception {
        Kit.run(
                arguments,
                Map.of("client", client, "server", server, "ping", client, "pong", server));
    }

    /** Returns the encoding of this run's payloads; literals are text. */
    public static String encoding(Kit kit) {
        return kit.spec.payloadLiteral.isEmpty() ? kit.spec.payloadEncoding : "text";
    }

    /** Returns the server's address; `allowed` describes the format for the error message. */
    public static String endpoint(Kit kit, String allowed) {
        List<String> endpoints = kit.spec.peersEndpoints;
        if (!endpoints.isEmpty()) return endpoints.get(0);
        String reason = "peers.endpoints: found none; allowed: " + allowed;
        throw new NodeException(ExitCode.BAD_SPEC, "peers.endpoints", reason);
    }

    /** Throws an exception if the response is an error (C-36). */
    public static void checkStatus(int status) throws IOException {
        if (status != 200) throw new IOException("HTTP status " + status);
    }

    /** Returns a pool's fixed number of threads, or "cached" for a pool that grows. */
    public static JsonValue workers(int workers) {
        return workers > 0 ? Json.value(workers) : Json.value("cached");
    }

    /** Prints READY and adds keep_alive; `discoveryNs` is null without probes. */
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
