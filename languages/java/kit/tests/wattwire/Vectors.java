package wattwire;

import com.eclipsesource.json.Json;
import com.eclipsesource.json.JsonArray;
import com.eclipsesource.json.JsonObject;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.List;
import java.util.Set;
import web.RecordJson;

/**
 * Answers questions about the Java kit, a line each: byte strings are hexadecimal, "-" is none.
 */
public final class Vectors {
    private Vectors() {}

    public static void main(String[] arguments) throws Exception {
        var bytes = new InputStreamReader(System.in, StandardCharsets.UTF_8);
        try (BufferedReader lines = new BufferedReader(bytes)) {
            for (String line; (line = lines.readLine()) != null; )
                System.out.println(answer(line.split(" ")));
        }
    }

    private static String answer(String[] words) throws Exception {
        switch (words[0]) {
            case "clock": return "" + Kit.now();
            case "payload": return HexFormat.of().formatHex(payload(words, words[4], words[5]));
            case "record": return RecordJson.toJson(payload(words, "record", words[4]));
            case "check": return check(words);
            case "check-record": return checkRecord(words);
            case "samples": return samples(words);
            default: return spec(words[1]);
        }
    }

    private static Payload shape(String encoding, String bytes, String seed, int node,
        String verify) {
        JsonObject spec = new JsonObject().add("payload.encoding", encoding).add("verify", verify)
            .add("payload.bytes", Integer.parseInt(bytes)).add("payload.seed", Long.parseLong(seed))
            .add("payload.literal", "").add("reply", "echo").add("reply.literal", "");
        return new Payload(spec, List.of(Json.value(node)));
    }

    private static byte[] payload(String[] words, String encoding, String bytes) {
        long seq = Long.parseUnsignedLong(words[2]);
        Payload shape = shape(encoding, bytes, words[1], (int) (seq >>> 48), "full");
        byte[] data = shape.template.clone();
        shape.stamp(data, 1, 2); // a buffer is reused: what stood before must not shine through
        shape.stamp(data, seq, Long.parseLong(words[3]));
        return data;
    }

    private static String verdict(Payload shape, byte[] message) {
        Payload.Arrival found = shape.check(message);
        boolean readable = found.seq() != Payload.NO_SEQ;
        String name = found.verdict() == Payload.CORRUPT ? "corrupt" : "foreign";
        return (found.verdict() == Payload.OK ? "ok" : name) + " "
            + (readable ? Long.toUnsignedString(found.seq()) : "-");
    }

    private static byte[] bytes(String hex) {
        return HexFormat.of().parseHex(hex.replace("-", ""));
    }

    private static String check(String[] words) {
        int node = Integer.parseInt(words[4]);
        return verdict(shape(words[2], words[3], words[1], node, words[5]), bytes(words[6]));
    }

    private static String checkRecord(String[] words) {
        Payload shape = shape("record", words[2], words[1], Integer.parseInt(words[3]), words[4]);
        String json = new String(bytes(words[5]), StandardCharsets.UTF_8);
        return verdict(shape, RecordJson.fromJson(json));
    }

    private static String samples(String[] words) throws Exception {
        JsonObject spec = new JsonObject().add("payload.encoding", "bytes").add("verify", "full")
            .add("payload.bytes", 64).add("payload.literal", "").add("reply", "echo")
            .add("reply.literal", "").add("pattern", "topic").add("loop", "closed").add("count", 0)
            .add("duration_ns", 0).add("phase_ns", 0).add("peers.nodes", new JsonArray())
            .add("role", Kit.ROLES.get(Integer.parseInt(words[2])))
            .add("node", Json.parse(words[3])).add("payload.seed", Json.parse(words[4]))
            .add("record.capacity", Json.parse(words[5]));
        Kit kit = new Kit(spec);
        for (int at = 6; at + 7 < words.length; at += 8) {
            long[] n = new long[8];
            for (int i = 0; i < 8; i++) n[i] = Long.parseLong(words[at + i]);
            kit.kind = (byte) n[6];
            kit.add(n[0], n[1], n[2], n[3], (int) n[4], (int) n[5], (int) n[7]);
        }
        JsonObject done = kit.finish(words[1]);
        return done.get("recorded") + " " + done.get("overflow");
    }

    private static String spec(String path) {
        String fault = Kit.fault(path, Set.of());
        return fault == null ? "ok" : fault.split(": ")[0];
    }
}
