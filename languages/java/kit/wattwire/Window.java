package wattwire;

import java.util.Scanner;
import java.util.concurrent.CountDownLatch;

/** The time from GO to STOP, which standard input announces. */
final class Window {
    static final long NEVER = Long.MAX_VALUE;
    private final CountDownLatch begun = new CountDownLatch(1);
    private final CountDownLatch over = new CountDownLatch(1);
    private volatile long startNs = NEVER;
    private volatile long stopNs = NEVER;

    long startNs() {
        return startNs;
    }

    long stopNs() {
        return stopNs;
    }

    boolean isOver() {
        return stopNs != NEVER;
    }

    /** Waits for GO or STOP. */
    void awaitStart() throws InterruptedException {
        begun.await();
    }

    void awaitStop() throws InterruptedException {
        over.await();
    }

    /** Reads GO and STOP from standard input; at its end, ends the process (C-08, C-09). */
    void readInput() {
        Scanner input = new Scanner(System.in);
        while (input.hasNextLine()) obey(input.nextLine());
        ExitCode.INPUT_ENDED.end();
    }

    private void obey(String line) {
        if (line.equals("STOP")) stop();
        else if (line.matches("GO [0-9]{1,18}")) go(Long.parseLong(line.substring(3)));
        else throw KeyReader.refused("GO", line, "STOP, GO and a time");
    }

    private void go(long atNs) {
        long nowNs = Kit.now();
        if (atNs <= nowNs) throw KeyReader.refused("GO", atNs, "a time after " + nowNs);
        begin(atNs);
    }

    void begin(long atNs) {
        startNs = atNs;
        begun.countDown();
    }

    private void stop() {
        if (!isOver()) stopNs = Kit.now();
        begun.countDown();
        over.countDown();
    }
}
