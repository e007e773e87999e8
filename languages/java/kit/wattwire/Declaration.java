package wattwire;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;

/** Rejects a spec that requires something that it does not declare (C-03). */
final class Declaration {
    private static final Set<String> ONE_WAY = Set.of("topic", "pipeline");

    private Declaration() {}

    /** Checks the spec; `roles` are those for which the cell has a function. */
    static void check(Spec spec, Set<String> roles) {
        List<String> lacking = required(spec);
        lacking.removeAll(spec.declaredCapabilities);
        if (!roles.contains(spec.role) || !spec.declaredRoles.contains(spec.role))
            lacking.add("role " + spec.role);
        lacking.addAll(unsupportedSize(spec));
        lacking.addAll(spec.settings.unsupported());
        if (!lacking.isEmpty())
            throw NodeException.unsupported("this cell does not have " + lacking);
    }

    private static List<String> required(Spec spec) {
        List<String> names = new ArrayList<>();
        names.add("encoding." + spec.payloadEncoding);
        names.add("loop." + spec.loop);
        names.add("pacing." + spec.pacing);
        boolean isOneWay = ONE_WAY.contains(spec.pattern);
        if (!isOneWay) names.add("reply." + spec.reply);
        if (!spec.payloadLiteral.isEmpty()) names.add("literal");
        boolean isCaller = Constants.SENDING_ROLES.contains(spec.role) && !isOneWay;
        if (isCaller && spec.loop.equals("open") && spec.outstandingMax > 1)
            names.add("async_client");
        return names;
    }

    private static List<String> unsupportedSize(Spec spec) {
        long least = spec.declaredPayloadBytesMin;
        long most = spec.declaredPayloadBytesMax;
        if (spec.payloadEncoding.equals("text")) least *= 2;
        if (spec.payloadEncoding.equals("record")) {
            least = 0;
            most = spec.declaredRecordBytesMax;
        }
        if (!spec.payloadLiteral.isEmpty()) least = 0;
        if (least <= spec.payloadBytes && spec.payloadBytes <= most) return List.of();
        String sizes = " (supported: " + least + " to " + most + ")";
        return List.of("payload.bytes " + spec.payloadBytes + sizes);
    }
}
