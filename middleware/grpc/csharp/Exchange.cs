using System;
using System.Runtime.InteropServices;
using System.Text;
using Wattwire;

/// Makes one call at a time on its own completion queue. It allocates the memory to which the core
/// writes during a batch of operations only once.
sealed unsafe class Exchange {
    public enum Op {
        SendMetadata, SendMessage, SendClose, SendStatus, ReceiveMetadata, ReceiveMessage,
        ReceiveStatus, ReceiveClose
    }

    const int OpBytes = 80, OpsMax = 6, ArrayBytes = 24, ScratchBytes = 1024;
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

    /// `data` fills the first words of a grpc_op's union; the others stay 0.
    public Exchange Add(Op op, IntPtr data0 = default(IntPtr), IntPtr data1 = default(IntPtr),
            IntPtr data2 = default(IntPtr)) {
        var words = (IntPtr*)(ops + OpBytes * count++);
        words[0] = (IntPtr)op;
        words[2] = data0;
        words[3] = data1;
        words[4] = data2;
        return this;
    }

    public Exchange AddReceivedStatus() =>
        Add(Op.ReceiveStatus, Trailing, Status, details);

    public Exchange AddSentStatus(int code) =>
        Add(Op.SendStatus, IntPtr.Zero, IntPtr.Zero, (IntPtr)code);

    /// Starts the added operations, and waits for their end.
    public void Run(IntPtr call) {
        int error = Core.grpc_call_start_batch(call, ops, (IntPtr)count, Queue, IntPtr.Zero);
        count = 0;
        if (error != 0)
            throw new NodeError(ExitCode.MiddlewareFailed,
                $"grpc_call_start_batch: error {error} of grpc_call_error");
        Wait();
    }

    public bool Wait() =>
        Core.grpc_completion_queue_next(Queue, Core.Time.Never, IntPtr.Zero).Success != 0;

    /// Releases the objects that the core has written into this memory.
    public void Clear(IntPtr call) {
        Core.grpc_metadata_array_destroy(Metadata);
        Core.grpc_metadata_array_destroy(Trailing);
        var slice = (Core.Slice*)details;
        if (slice->References != IntPtr.Zero)
            Core.grpc_slice_unref(*slice);
        Core.grpc_call_unref(call);
        for (var word = (IntPtr*)Call; word < (IntPtr*)ops; word++)
            *word = IntPtr.Zero;
    }

    /// Returns a buffer of the core that contains a message.
    public static IntPtr Held(byte[] message) {
        Core.Slice slice = Core.grpc_slice_from_copied_buffer(message, (IntPtr)message.Length);
        IntPtr buffer = Core.grpc_raw_byte_buffer_create(ref slice, (IntPtr)1);
        Core.grpc_slice_unref(slice);
        return buffer;
    }

    public bool HasMessage => *(IntPtr*)Message != IntPtr.Zero;

    /// Returns the received message and releases its buffer, or returns null.
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
        return message;
    }

    /// Returns the library's details of the received status.
    public string TakeDetails() {
        string found = Encoding.UTF8.GetString(Bytes(*(Core.Slice*)details));
        Marshal.WriteIntPtr(details, IntPtr.Zero); // released
        return found;
    }

    static byte[] Bytes(Core.Slice slice) {
        bool inPlace = slice.References == IntPtr.Zero;
        byte* at = (byte*)&slice.Word0;
        var data = new byte[inPlace ? *at : (int)slice.Word0];
        Marshal.Copy(inPlace ? (IntPtr)(at + 1) : slice.Word1, data, 0, data.Length);
        Core.grpc_slice_unref(slice);
        return data;
    }
}
