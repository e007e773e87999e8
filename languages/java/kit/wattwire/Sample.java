package wattwire;

/** A record of the sample file (C-25) in preparation; a thread reuses it for all its messages. */
final class Sample {
    long seq;
    long intendedNs = Constants.UNKNOWN_NS;
    long beginNs;
    long endNs;
    int bytes;
    int peer;
    int flags;
}
