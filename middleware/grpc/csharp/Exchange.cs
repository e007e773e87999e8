using System;
using System.IO;
using System.Runtime.InteropServices;

/// One call at a time on a completion queue of its own: the memory that the core writes to while a
/// batch of operations is under way, made once.
sealed class Exchange {
    public enum Op {
        SendMetadata, SendMessage, SendClose, SendStatus, ReceiveMetadata, ReceiveMessage,
        ReceiveStatus, ReceiveClose
    }

    const int OpBytes = 80, OpDataAt = 16, OpsMax = 6, ArrayBytes = 24, ScratchBytes = 1024;
    public readonly IntPtr Queue = Core.grpc_completion_queue_create_for_next(IntPtr.Zero);
    public readonly IntPtr Call, Deadline, Metadata, Trailing, Message, Status;
    readonly IntPtr details, ops;
    int count;

    public Exchange() {
        IntPtr scratch = Marshal.AllocHGlobal(ScratchBytes);
        Marshal.Copy(new byte[ScratchBytes], 0, scratch, ScratchBytes);
        Call = scratch;
        Deadline = scratch + 8;
        Metadata = scratch + 24;
        Trailing = Metadata + ArrayBytes;
        Message = Trailing + ArrayBytes;
        Status = Message + 8;
        details = Status + 8; // a slice
        ops = details + 32;
    }

    public Exchange Add(Op op, params IntPtr[] data) {
        IntPtr at = ops + OpBytes * count++;
        Marshal.Copy(new byte[OpBytes], 0, at, OpBytes);
        Marshal.WriteInt32(at, (int)op);
        for (int i = 0; i < data.Length; i++)
            Marshal.WriteIntPtr(at, OpDataAt + 8 * i, data[i]);
        return this;
    }

    public Exchange AddReceivedStatus() =>
        Add(Op.ReceiveStatus, Trailing, Status, details, IntPtr.Zero);

    public Exchange AddSentStatus(int code) =>
        Add(Op.SendStatus, IntPtr.Zero, IntPtr.Zero, (IntPtr)code, IntPtr.Zero);

    /// Carries out what was added, and waits for its end.
    public void Run(IntPtr call) {
        int error = Core.grpc_call_start_batch(call, ops, (IntPtr)count, Queue, IntPtr.Zero);
        count = 0;
        if (error != 0)
            throw new NodeError(4, $"grpc_call_start_batch: error {error} of grpc_call_error");
        Wait();
    }

    public bool Wait() =>
        Core.grpc_completion_queue_next(Queue, Core.Time.Never, IntPtr.Zero).Success != 0;

    /// Gives back what the core has put into this memory.
    public void Clear(IntPtr call) {
        Core.grpc_metadata_array_destroy(Metadata);
        Core.grpc_metadata_array_destroy(Trailing);
        var slice = Marshal.PtrToStructure<Core.Slice>(details);
        if (slice.References != IntPtr.Zero)
            Core.grpc_slice_unref(slice);
        Core.grpc_call_unref(call);
        for (int at = 0; at < ops.ToInt64() - Call.ToInt64(); at += 8)
            Marshal.WriteInt64(Call, at, 0);
    }

    /// A buffer of the core with a message of one field, number 1, of type bytes or string.
    public static IntPtr Encoded(byte[] payload) {
        var field = new MemoryStream(payload.Length + 6);
        if (payload.Length > 0)
            field.WriteByte(1 << 3 | 2);
        for (uint left = (uint)payload.Length; left > 0; left >>= 7)
            field.WriteByte((byte)(left < 128 ? left : left & 127 | 128));
        field.Write(payload, 0, payload.Length);
        Core.Slice slice =
            Core.grpc_slice_from_copied_buffer(field.ToArray(), (IntPtr)field.Length);
        IntPtr buffer = Core.grpc_raw_byte_buffer_create(ref slice, (IntPtr)1);
        Core.grpc_slice_unref(slice);
        return buffer;
    }

    public bool HasMessage => Marshal.ReadIntPtr(Message) != IntPtr.Zero;

    /// The payload in the message that was received, which is given back; null where it is none.
    public byte[] TakeMessage() {
        if (!HasMessage)
            return null;
        IntPtr buffer = Marshal.ReadIntPtr(Message);
        var reader = new Core.Reader();
        byte[] message = null;
        if (Core.grpc_byte_buffer_reader_init(ref reader, buffer) != 0) {
            message = Bytes(Core.grpc_byte_buffer_reader_readall(ref reader));
            Core.grpc_byte_buffer_reader_destroy(ref reader);
        }
        Core.grpc_byte_buffer_destroy(buffer);
        Marshal.WriteIntPtr(Message, IntPtr.Zero);
        return message == null ? null : Decoded(message);
    }

    static byte[] Bytes(Core.Slice slice) {
        GCHandle held = GCHandle.Alloc(slice, GCHandleType.Pinned);
        IntPtr at = held.AddrOfPinnedObject();
        bool inPlace = slice.References == IntPtr.Zero;
        var data = new byte[inPlace ? Marshal.ReadByte(at, 8) : (int)slice.Word0];
        Marshal.Copy(inPlace ? at + 9 : slice.Word1, data, 0, data.Length);
        held.Free();
        Core.grpc_slice_unref(slice);
        return data;
    }

    /// Null where it is not that one field.
    static byte[] Decoded(byte[] message) {
        if (message.Length == 0)
            return message;
        long length = 0;
        int at = 1, shift = 0;
        for (bool more = message[0] == (1 << 3 | 2); more; shift += 7) {
            if (at == message.Length || shift > 28)
                return null;
            more = message[at] >= 128;
            length |= (long)(message[at++] & 127) << shift;
        }
        if (shift == 0 || message.Length - at != length)
            return null;
        var payload = new byte[length];
        Buffer.BlockCopy(message, at, payload, 0, payload.Length);
        return payload;
    }
}
