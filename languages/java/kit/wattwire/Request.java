package wattwire;

/** An arrival in hand: its thread's, until that thread's next one. */
public final class Request {
    final Sample sample = new Sample();
    Verdict verdict;
    boolean hasSeq;
    boolean isRecorded;
    long sendNs;
    byte[] reply;
    byte[] acknowledgement; // the reply's buffer where replies are acks

    /** What an arrival is (C-21). */
    enum Verdict {
        VALID,
        CORRUPT,
        FOREIGN
    }

    Request() {}

    /** To be handed over; null where the request must not be answered. */
    public byte[] reply() {
        return reply;
    }
}
