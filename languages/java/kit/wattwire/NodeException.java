package wattwire;

/** Ends the node, whichever thread throws it. */
public final class NodeException extends RuntimeException {
    private static final long serialVersionUID = 1L;
    private final ExitCode code;
    private final String key;

    /** The key is that of the spec which is refused, else null. */
    public NodeException(ExitCode code, String key, String reason) {
        super(reason);
        this.code = code;
        this.key = key;
    }

    /** What the cell does not have (C-03). */
    public static NodeException unsupported(String reason) {
        return new NodeException(ExitCode.UNSUPPORTED, null, reason);
    }

    ExitCode code() {
        return code;
    }

    String key() {
        return key;
    }
}
