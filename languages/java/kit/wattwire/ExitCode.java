package wattwire;

/** What the process ends with. */
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

    /** Ends the process at once, whatever its threads do. */
    void end() {
        Runtime.getRuntime().halt(number);
    }
}
