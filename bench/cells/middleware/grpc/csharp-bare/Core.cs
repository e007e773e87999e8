using System.Runtime.InteropServices;

/// What the loop uses of gRPC's C core, version 29 of its binary interface.
static unsafe class Core {
    const string Library = "libgrpc.so.29";

    public struct Operation { public long What; public void* Reserved, A, B, C, D, E, F, G, H; }
    /// A counter of references, then a length and a pointer or up to 23 bytes in place.
    public struct Slice { public void* References; public long Length; public byte* Data, More; }
    public struct Array { public void* Count, Capacity, Items; }
    public struct Reader { public void* In, Out, Current; }
    public struct Time { public long Seconds; public int Nanoseconds, Clock; }
    public struct Event { public int Type, Success; public void* Tag; }

    [DllImport("libgpr.so.29")] public static extern Time gpr_now(int clock);
    [DllImport(Library)] public static extern void grpc_init();
    [DllImport(Library)] public static extern void* grpc_insecure_credentials_create();
    [DllImport(Library)]
    public static extern void* grpc_channel_create(string to, void* credentials, void* args);
    [DllImport(Library)]
    public static extern void* grpc_completion_queue_create_for_next(void* reserved);
    [DllImport(Library)]
    public static extern void* grpc_channel_register_call(
        void* channel, string method, string host, void* reserved);
    [DllImport(Library)]
    public static extern void* grpc_channel_create_registered_call(
        void* channel, void* parent, uint mask, void* queue, void* method, Time end,
        void* reserved);
    [DllImport(Library)]
    public static extern int grpc_call_start_batch(
        void* call, Operation* operations, long count, void* tag, void* reserved);
    [DllImport(Library)]
    public static extern Event grpc_completion_queue_next(void* queue, Time end, void* reserved);
    [DllImport(Library)] public static extern void grpc_call_unref(void* call);
    [DllImport(Library)]
    public static extern Slice grpc_slice_from_copied_buffer(byte[] data, long length);
    [DllImport(Library)] public static extern void grpc_slice_unref(Slice slice);
    [DllImport(Library)]
    public static extern void* grpc_raw_byte_buffer_create(Slice* slices, long count);
    [DllImport(Library)] public static extern void grpc_byte_buffer_destroy(void* buffer);
    [DllImport(Library)]
    public static extern int grpc_byte_buffer_reader_init(Reader* reader, void* buffer);
    [DllImport(Library)]
    public static extern Slice grpc_byte_buffer_reader_readall(Reader* reader);
    [DllImport(Library)] public static extern void grpc_byte_buffer_reader_destroy(Reader* reader);
    [DllImport(Library)] public static extern void grpc_metadata_array_destroy(Array* array);
}
