package wattwire;

/** The exit code of the process. */
public enum ExitCode {
    DONE(0),
    BAD_SPEC(2),
    UNSUPPORTED(3),
    MIDDLEWARE_FAILED(4),
    INPUT_ENDED(5);

    final int number;

    ExitCode(int number) {
        this.number = number;
    }

    /** Ends the process at once, without waiting for its threads. */
    void end() {
        Runtime.getRuntime().halt(number);
    }
}
