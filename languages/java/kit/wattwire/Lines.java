package wattwire;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.eclipsesource.json.Json;
import com.eclipsesource.json.JsonObject;
import com.eclipsesource.json.JsonValue;

import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;

/** Prints the lines of a node (C-05). */
final class Lines {
    /** Java can open a descriptor only by this name. */
    private static final String DESCRIPTOR = "/proc/self/fd/3";

    private Lines() {}

    static synchronized void print(String keyword, JsonObject fields) {
        try (OutputStream lines = new FileOutputStream(DESCRIPTOR, true)) {
            lines.write((keyword + " " + fields + "\n").getBytes(UTF_8));
        } catch (IOException error) {
            System.err.println(DESCRIPTOR + ": " + error + ": " + fields);
            ExitCode.MIDDLEWARE_FAILED.end();
        }
    }

    /** Prints ERROR and ends the process. */
    static void fail(Throwable error) {
        boolean isKnown = error instanceof NodeException;
        if (!isKnown) error.printStackTrace();
        ExitCode code = isKnown ? ((NodeException) error).code() : ExitCode.MIDDLEWARE_FAILED;
        JsonObject fields = new JsonObject();
        fields.add("code", code.number);
        fields.add("key", isKnown ? ((NodeException) error).key() : null);
        fields.add("reason", isKnown ? error.getMessage() : error.toString());
        print("ERROR", fields);
        code.end();
    }

    /** Returns the number as JSON, or JSON's null. */
    static JsonValue nullable(Long number) {
        return number == null ? Json.NULL : Json.value(number);
    }
}
