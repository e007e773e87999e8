package wattwire;

/** An arrival; its thread may use it until the thread's next arrival. */
public final class Request {
    final Sample sample = new Sample();
    Verdict verdict;
    boolean hasSeq;
    boolean isRecorded;
    long sendNs;
    byte[] reply;
    byte[] acknowledgement; // buffer for acks

    /** The classes of arrivals (C-21). */
    enum Verdict {
        VALID,
        CORRUPT,
        FOREIGN
    }

    Request() {}

    /** Returns the reply to hand over, or null if the request must not be answered. */
    public byte[] reply() {
        return reply;
    }
}
