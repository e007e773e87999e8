using System;
using System.Runtime.InteropServices;

/// The functions of gRPC's C core that this cell uses (binary interface 29, grpc/grpc.h).
static class Core {
    const string Library = "libgrpc.so.29";
    public const int Ok = 0, DeadlineExceeded = 4, FailedPrecondition = 9;

    /// grpc_slice: a reference counter, then a pointer and a length, or up to 23 bytes in place.
    [StructLayout(LayoutKind.Sequential)]
    public struct Slice {
        public IntPtr References, Word0, Word1, Word2;
    }

    /// gpr_timespec; clock 0 is CLOCK_MONOTONIC.
    [StructLayout(LayoutKind.Sequential)]
    public struct Time {
        public long Seconds;
        public int Nanoseconds, Clock;

        public static Time At(long ns) =>
            new Time { Seconds = ns / 1000000000, Nanoseconds = (int)(ns % 1000000000) };
        public static readonly Time Never = new Time { Seconds = long.MaxValue };
    }

    /// grpc_event.
    [StructLayout(LayoutKind.Sequential)]
    public struct Event {
        public int Type, Success;
        public IntPtr Tag;
    }

    /// grpc_ssl_pem_key_cert_pair.
    [StructLayout(LayoutKind.Sequential)]
    public struct Pair {
        public string Key, Certificate;
    }

    /// grpc_byte_buffer_reader.
    [StructLayout(LayoutKind.Sequential)]
    public struct Reader {
        public IntPtr In, Out, Current;
    }

    [DllImport(Library)] public static extern void grpc_init();
    [DllImport(Library)] public static extern IntPtr grpc_version_string();
    [DllImport(Library)] public static extern IntPtr grpc_insecure_credentials_create();
    [DllImport(Library)] public static extern IntPtr grpc_insecure_server_credentials_create();
    [DllImport(Library)]
    public static extern IntPtr grpc_ssl_credentials_create(
        string authorities, IntPtr pair, IntPtr options, IntPtr reserved);
    [DllImport(Library)]
    public static extern IntPtr grpc_ssl_server_credentials_create(
        string authorities, ref Pair pairs, IntPtr count, int asksClients, IntPtr reserved);
    [DllImport(Library)]
    public static extern IntPtr grpc_channel_create(string target, IntPtr credentials, IntPtr args);
    [DllImport(Library)] public static extern void grpc_channel_destroy(IntPtr channel);
    [DllImport(Library)]
    public static extern IntPtr grpc_channel_register_call(
        IntPtr channel, string method, string host, IntPtr reserved);
    [DllImport(Library)]
    public static extern IntPtr grpc_channel_create_registered_call(
        IntPtr channel, IntPtr parent, uint mask, IntPtr queue, IntPtr method, Time deadline,
        IntPtr reserved);
    [DllImport(Library)]
    public static extern int grpc_call_start_batch(
        IntPtr call, IntPtr operations, IntPtr count, IntPtr tag, IntPtr reserved);
    [DllImport(Library)] public static extern void grpc_call_unref(IntPtr call);
    [DllImport(Library)]
    public static extern IntPtr grpc_completion_queue_create_for_next(IntPtr reserved);
    [DllImport(Library)]
    public static extern Event grpc_completion_queue_next(
        IntPtr queue, Time deadline, IntPtr reserved);
    [DllImport(Library)]
    public static extern IntPtr grpc_server_create(IntPtr args, IntPtr reserved);
    [DllImport(Library)]
    public static extern void grpc_server_register_completion_queue(
        IntPtr server, IntPtr queue, IntPtr reserved);
    [DllImport(Library)]
    public static extern int grpc_server_add_http2_port(
        IntPtr server, string address, IntPtr credentials);
    [DllImport(Library)] public static extern void grpc_server_start(IntPtr server);
    [DllImport(Library)]
    public static extern IntPtr grpc_server_register_method(
        IntPtr server, string method, string host, int payload, uint flags);
    [DllImport(Library)]
    public static extern int grpc_server_request_registered_call(
        IntPtr server, IntPtr method, IntPtr call, IntPtr deadline, IntPtr metadata,
        IntPtr payload, IntPtr queueOfCall, IntPtr queueOfNotice, IntPtr tag);
    [DllImport(Library)] public static extern void grpc_metadata_array_destroy(IntPtr array);
    [DllImport(Library)]
    public static extern Slice grpc_slice_from_copied_buffer(byte[] data, IntPtr length);
    [DllImport(Library)] public static extern void grpc_slice_unref(Slice slice);
    [DllImport(Library)]
    public static extern IntPtr grpc_raw_byte_buffer_create(ref Slice slices, IntPtr count);
    [DllImport(Library)] public static extern void grpc_byte_buffer_destroy(IntPtr buffer);
    [DllImport(Library)]
    public static extern int grpc_byte_buffer_reader_init(ref Reader reader, IntPtr buffer);
    [DllImport(Library)]
    public static extern Slice grpc_byte_buffer_reader_readall(ref Reader reader);
    [DllImport(Library)]
    public static extern void grpc_byte_buffer_reader_destroy(ref Reader reader);
}
