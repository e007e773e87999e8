import jakarta.xml.bind.annotation.XmlAccessType;
import jakarta.xml.bind.annotation.XmlAccessorType;

import wattwire.Payload;

import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;

/** The record of C-32 for JAXB, which binds xs:unsignedLong (sequences) to BigInteger. */
@XmlAccessorType(XmlAccessType.FIELD)
public class RecordType {
    /** Sequence and send time. */
    @XmlAccessorType(XmlAccessType.FIELD)
    public static class Header {
        public BigInteger seq;
        public Long send_ns;
    }

    /** Position and orientation. */
    @XmlAccessorType(XmlAccessType.FIELD)
    public static class Pose {
        public Axes position;
        public Axes orientation;
    }

    /** Axes; a position has no `w`. */
    @XmlAccessorType(XmlAccessType.FIELD)
    public static class Axes {
        public Double x;
        public Double y;
        public Double z;
        public Double w;
    }

    /** Two unsigned 32-bit numbers and a value. */
    @XmlAccessorType(XmlAccessType.FIELD)
    public static class Sample {
        public Long id;
        public Long state;
        public Double value;
    }

    /** The sequence again. */
    @XmlAccessorType(XmlAccessType.FIELD)
    public static class Trailer {
        public BigInteger seq;
    }

    public Header header = new Header();
    public String name;
    public Pose pose = new Pose();
    public List<Sample> samples = new ArrayList<>();
    public Trailer trailer = new Trailer();

    static RecordType of(byte[] record) {
        ByteBuffer data = ByteBuffer.wrap(record).order(ByteOrder.LITTLE_ENDIAN);
        RecordType found = new RecordType();
        found.header.seq = unsigned(data.getLong());
        found.header.send_ns = data.getLong();
        found.name = Payload.name(record);
        data.position(32);
        found.pose.position = axes(data, false);
        found.pose.orientation = axes(data, true);
        while (data.remaining() > 8) {
            Sample sample = new Sample();
            sample.id = Integer.toUnsignedLong(data.getInt());
            sample.state = Integer.toUnsignedLong(data.getInt());
            sample.value = data.getDouble();
            found.samples.add(sample);
        }
        found.trailer.seq = unsigned(data.getLong());
        return found;
    }

    private static BigInteger unsigned(long value) {
        return new BigInteger(Long.toUnsignedString(value));
    }

    private static Axes axes(ByteBuffer data, boolean turned) {
        Axes axes = new Axes();
        axes.x = data.getDouble();
        axes.y = data.getDouble();
        axes.z = data.getDouble();
        if (turned) axes.w = data.getDouble();
        return axes;
    }

    /** Returns the kit's message, or Payload.UNREADABLE if a field is missing. */
    static byte[] toMessage(RecordType found) {
        try {
            ByteBuffer data = Payload.record(found.name, found.samples.size());
            data.putLong(found.header.seq.longValue()).putLong(found.header.send_ns).position(32);
            Axes position = found.pose.position;
            Axes orientation = found.pose.orientation;
            data.putDouble(position.x).putDouble(position.y).putDouble(position.z);
            data.putDouble(orientation.x)
                    .putDouble(orientation.y)
                    .putDouble(orientation.z)
                    .putDouble(orientation.w);
            for (Sample sample : found.samples)
                data.putInt(sample.id.intValue())
                        .putInt(sample.state.intValue())
                        .putDouble(sample.value);
            return data.putLong(found.trailer.seq.longValue()).array();
        } catch (NullPointerException error) {
            return Payload.UNREADABLE;
        }
    }
}
