using System.Text;
using static Core;

/// A message of one text, in a buffer of the core.
static unsafe class Message {
    const byte Field = 1 << 3 | 2; // a field's number, and the type of texts

    /// A text of less than 128 bytes, whose length is one byte.
    public static void* Made(string text) {
        byte[] message = Encoding.UTF8.GetBytes("??" + text);
        message[0] = Field;
        message[1] = (byte)(message.Length - 2);
        Slice slice = grpc_slice_from_copied_buffer(message, message.Length);
        void* buffer = grpc_raw_byte_buffer_create(&slice, 1);
        grpc_slice_unref(slice);
        return buffer;
    }

    /// Null where it is no such message.
    public static string Read(void* buffer) {
        var reader = new Reader();
        if (buffer == null || grpc_byte_buffer_reader_init(&reader, buffer) == 0)
            return null;
        Slice found = grpc_byte_buffer_reader_readall(&reader);
        bool isShort = found.References == null;
        byte* data = isShort ? (byte*)&found.Length + 1 : found.Data;
        long bytes = isShort ? (byte)found.Length : found.Length;
        bool isText = bytes >= 2 && data[0] == Field && data[1] == bytes - 2;
        string text = isText ? Encoding.UTF8.GetString(data + 2, data[1]) : null;
        grpc_slice_unref(found);
        grpc_byte_buffer_reader_destroy(&reader);
        return text;
    }
}
