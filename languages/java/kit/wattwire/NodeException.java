package wattwire;

/** An error that ends the node, in any thread. */
public final class NodeException extends RuntimeException {
    private static final long serialVersionUID = 1L;
    private final ExitCode code;
    private final String key;

    /** Creates an error; `key` is the rejected key of the spec, or null. */
    public NodeException(ExitCode code, String key, String reason) {
        super(reason);
        this.code = code;
        this.key = key;
    }

    /** Returns the error for a spec that the cell does not support (C-03). */
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
