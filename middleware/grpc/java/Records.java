import wattwire.Payload;
import wattwire.Wattwire;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** Converts a record's nominal bytes, the kit's form, to protobuf and back (C-32). */
final class Records {
    private Records() {}

    static Wattwire.RecordPayload of(byte[] record) {
        ByteBuffer data = ByteBuffer.wrap(record).order(ByteOrder.LITTLE_ENDIAN);
        var found = Wattwire.RecordPayload.newBuilder();
        found.getHeaderBuilder().setSeq(data.getLong()).setSendNs(data.getLong());
        found.setName(Payload.name(record));
        data.position(32);
        found.getPoseBuilder()
                .getPositionBuilder()
                .setX(data.getDouble())
                .setY(data.getDouble())
                .setZ(data.getDouble());
        found.getPoseBuilder()
                .getOrientationBuilder()
                .setX(data.getDouble())
                .setY(data.getDouble())
                .setZ(data.getDouble())
                .setW(data.getDouble());
        while (data.remaining() > 8)
            found.addSamples(
                    Wattwire.Sample.newBuilder()
                            .setId(data.getInt())
                            .setState(data.getInt())
                            .setValue(data.getDouble()));
        found.getTrailerBuilder().setSeq(data.getLong());
        return found.build();
    }

    static byte[] toMessage(Wattwire.RecordPayload found) {
        ByteBuffer data = Payload.record(found.getName(), found.getSamplesCount());
        data.putLong(found.getHeader().getSeq()).putLong(found.getHeader().getSendNs());
        Wattwire.Position position = found.getPose().getPosition();
        Wattwire.Orientation turn = found.getPose().getOrientation();
        data.position(32);
        data.putDouble(position.getX()).putDouble(position.getY()).putDouble(position.getZ());
        data.putDouble(turn.getX())
                .putDouble(turn.getY())
                .putDouble(turn.getZ())
                .putDouble(turn.getW());
        for (Wattwire.Sample sample : found.getSamplesList())
            data.putInt(sample.getId()).putInt(sample.getState()).putDouble(sample.getValue());
        return data.putLong(found.getTrailer().getSeq()).array();
    }
}
