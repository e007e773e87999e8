using System;
using System.Diagnostics;
using static Core;

/// `client.exe HOST PORT WARM CALLS`: calls per second of a loop on gRPC's C core, without a kit.
/// What is thrown ends the process with 1.
static unsafe class Client {
    const string Words = "Hello World";
    static void* channel, method, queue;

    static void Main(string[] args) {
        grpc_init();
        int warm = int.Parse(args[2]), calls = int.Parse(args[3]);
        queue = grpc_completion_queue_create_for_next(null);
        void* credentials = grpc_insecure_credentials_create();
        channel = grpc_channel_create($"{args[0]}:{args[1]}", credentials, null);
        method = grpc_channel_register_call(channel, "/wattwire.Calls/Text", null, null);
        Call();
        Console.WriteLine("begun");
        for (int i = 0; i < warm; i++)
            Call();
        var watch = Stopwatch.StartNew();
        Console.WriteLine("warm");
        for (int i = 0; i < calls; i++)
            Call();
        Console.WriteLine(calls / watch.Elapsed.TotalSeconds);
    }

    static void Call() {
        Time end = gpr_now(0);
        end.Seconds += 5;
        void* sent = Message.Made(Words), received = null;
        var details = new Slice();
        Core.Array first = new Core.Array(), last = new Core.Array();
        int status = -1;
        Operation* batch = stackalloc Operation[6]; // by numbers of grpc_op_type
        batch[0] = new Operation { What = 0 };
        batch[1] = new Operation { What = 1, A = sent };
        batch[2] = new Operation { What = 2 };
        batch[3] = new Operation { What = 4, A = &first };
        batch[4] = new Operation { What = 5, A = &received };
        batch[5] = new Operation { What = 6, A = &last, B = &status, C = &details };
        void* call =
            grpc_channel_create_registered_call(channel, null, 0, queue, method, end, null);
        if (grpc_call_start_batch(call, batch, 6, null, null) == 0)
            grpc_completion_queue_next(queue, new Time { Seconds = long.MaxValue }, null);
        string found = status == 0 ? Message.Read(received) : null;
        if (found != Words)
            throw new InvalidOperationException($"status {status}: {found}, not {Words}");
        grpc_byte_buffer_destroy(received);
        grpc_byte_buffer_destroy(sent);
        grpc_metadata_array_destroy(&first);
        grpc_metadata_array_destroy(&last);
        if (details.References != null)
            grpc_slice_unref(details);
        grpc_call_unref(call);
    }
}
