package wattwire;

import web.RecordJson;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.List;

/** Answers questions about the kit, one line each. Bytes are hexadecimal; "-" is an empty value. */
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
            case "clock":
                return "" + Kit.now();
            case "payload":
                return HexFormat.of().formatHex(payload(words, words[4], words[5]));
            case "record":
                return RecordJson.toJson(payload(words, "record", words[4]));
            case "check":
                return check(words);
            case "check-record":
                return checkRecord(words);
            case "samples":
                return samples(words);
            default:
                return spec(words[1]);
        }
    }

    private static Payload shape(
            String encoding, String bytes, String seed, int node, String verify) {
        var shape =
                new Payload.Shape(
                        encoding,
                        Long.parseLong(bytes),
                        Long.parseLong(seed),
                        "",
                        verify,
                        "echo",
                        "");
        return new Payload(shape, List.of((long) node));
    }

    private static byte[] payload(String[] words, String encoding, String bytes) {
        long seq = Long.parseUnsignedLong(words[2]);
        Payload shape = shape(encoding, bytes, words[1], (int) (seq >>> 48), "full");
        byte[] data = shape.newMessage();
        shape.stamp(data, 1, 2); // the next stamp must overwrite this one
        shape.stamp(data, seq, Long.parseLong(words[3]));
        return data;
    }

    private static String verdict(Payload shape, byte[] message) {
        Request request = new Request();
        shape.check(message, request);
        String name =
                switch (request.verdict) {
                    case VALID -> "ok";
                    case CORRUPT -> "corrupt";
                    case FOREIGN -> "foreign";
                };
        return name + " " + (request.hasSeq ? Long.toUnsignedString(request.sample.seq) : "-");
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

    private static String samples(String[] words) throws IOException {
        Samples samples = new Samples(Long.parseLong(words[5]), Constants.MESSAGE);
        for (int at = 6; at + 7 < words.length; at += 8) {
            Sample sample = new Sample();
            sample.seq = Long.parseUnsignedLong(words[at]);
            sample.intendedNs = Long.parseLong(words[at + 1]);
            sample.beginNs = Long.parseLong(words[at + 2]);
            sample.endNs = Long.parseLong(words[at + 3]);
            sample.bytes = Integer.parseUnsignedInt(words[at + 4]);
            sample.peer = Integer.parseInt(words[at + 5]);
            sample.flags = Integer.parseInt(words[at + 7]);
            samples.add(sample, Byte.parseByte(words[at + 6]));
        }
        int role = Integer.parseInt(words[2]);
        int node = Integer.parseInt(words[3]);
        samples.write(Path.of(words[1]), role, node, Long.parseLong(words[4]));
        return samples.recorded() + " " + samples.overflow();
    }

    private static String spec(String path) {
        try {
            KeyReader.readSpec(Path.of(path));
            return "ok";
        } catch (NodeException error) {
            return error.key();
        }
    }
}
