using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Net;
using System.Net.Sockets;
using System.Runtime.InteropServices;
using Wattwire;

sealed class Frame {
    public byte Kind;
    public ulong Number;
    public byte[] Payload;
}

/// A connection that carries frames; README.md describes the bytes and the delays.
sealed class Stream {
    public const byte Message = 0, Request = 1, Reply = 2;
    public const int SocketLevel = 1, SendBuffer = 7, ReceiveBuffer = 8;
    public const int TcpLevel = 6, QuickAck = 12;
    const int HeadBytes = 13, PayloadBytesMax = 67108864, ReadBytes = 65536;

    // The class library halves requested buffer sizes, and does not support TCP_QUICKACK.
    [DllImport("libc")]
    static extern int getsockopt(IntPtr socket, int level, int name, out int value, ref int bytes);
    [DllImport("libc")]
    static extern int setsockopt(IntPtr socket, int level, int name, ref int value, int bytes);

    public readonly Socket Socket;
    readonly Kit kit;
    readonly bool twoWrites, quickAck;
    byte[] buffer = new byte[HeadBytes + ReadBytes];
    int begin, end;

    public Stream(Kit kit, Socket opened) {
        this.kit = kit;
        Socket = opened;
        twoWrites = kit.Spec.Settings.Integer("writes") == 2;
        quickAck = kit.Spec.Settings.Text("tcp_quickack") == "on";
        Acknowledge();
    }

    public static int Option(Socket socket, int level, int name) {
        int bytes = sizeof(int);
        getsockopt(socket.Handle, level, name, out int value, ref bytes);
        return value;
    }

    static void SetOption(Socket socket, int level, int name, int value) =>
        setsockopt(socket.Handle, level, name, ref value, sizeof(int));

    /// Returns a configured socket, before it connects or listens.
    public static Socket Prepared(Kit kit) {
        var socket = new Socket(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        int receive = (int)kit.Spec.Settings.Integer("receive_buffer_bytes");
        int send = (int)kit.Spec.Settings.Integer("send_buffer_bytes");
        if (receive > 0)
            SetOption(socket, SocketLevel, ReceiveBuffer, receive);
        if (send > 0)
            SetOption(socket, SocketLevel, SendBuffer, send);
        socket.NoDelay = kit.Spec.Settings.Flag("tcp_nodelay");
        return socket;
    }

    /// Connects to HOST:PORT.
    public static Stream Connect(Kit kit, string endpoint) {
        int colon = endpoint.LastIndexOf(':');
        Socket socket = Prepared(kit);
        try {
            socket.Connect(IPAddress.Parse(endpoint.Substring(0, colon)),
                int.Parse(endpoint.Substring(colon + 1)));
        } catch (SocketException error) {
            throw new NodeError(ExitCode.MiddlewareFailed, $"connect {endpoint}: {error.Message}");
        }
        return new Stream(kit, socket);
    }

    /// Sends a frame. Throws an IOException if the send takes longer than timeout_ns or the peer
    /// has closed the connection; a partly sent frame then breaks the stream.
    public void Send(byte kind, ulong number, byte[] payload) {
        var head = new byte[HeadBytes];
        BitConverter.GetBytes(payload.Length).CopyTo(head, 0);
        head[4] = kind;
        BitConverter.GetBytes(number).CopyTo(head, 5);
        long deadlineNs = Kit.NowNs() + kit.Spec.TimeoutNs;
        try {
            if (twoWrites)
                Write(deadlineNs, head);
            if (twoWrites && payload.Length > 0)
                Write(deadlineNs, payload);
            if (!twoWrites)
                Write(deadlineNs, head, payload);
        } catch (SystemException error) when (IsOfSocket(error)) {
            Socket.Close();
            throw new IOException(error.Message, error);
        }
    }

    void Write(long deadlineNs, params byte[][] parts) {
        int total = parts.Sum(part => part.Length);
        var left = parts.Select(part => new ArraySegment<byte>(part)).ToList();
        while (true) {
            // Rounded up, because 0 means no timeout.
            Socket.SendTimeout = (int)Math.Max(1, (deadlineNs - Kit.NowNs() + 999999) / 1000000);
            int taken = Socket.Send(left);
            if ((total -= taken) == 0)
                return;
            if (Kit.NowNs() > deadlineNs)
                throw new IOException("the peer's buffer stayed full for timeout_ns");
            for (; taken >= left[0].Count; left.RemoveAt(0))
                taken -= left[0].Count;
            left[0] = new ArraySegment<byte>(
                left[0].Array, left[0].Offset + taken, left[0].Count - taken);
        }
    }

    /// Returns the next frame, or null if none is complete at the deadline. Throws an IOException
    /// at the end of the stream.
    public Frame Receive(long deadlineNs = long.MaxValue) {
        try {
            for (Frame frame; ; end += Arrived()) {
                if ((frame = Take()) != null)
                    return frame;
                long leftNs = deadlineNs - Kit.NowNs();
                if (leftNs <= 0)
                    return null;
                // 0 would not wait; without a deadline the read itself waits.
                int leftUs = (int)Math.Min(1000000, leftNs / 1000 + 1);
                while (deadlineNs != long.MaxValue && !Socket.Poll(leftUs, SelectMode.SelectRead))
                    if ((leftUs = (int)Math.Min(1000000, (deadlineNs - Kit.NowNs()) / 1000)) <= 0)
                        return null;
            }
        } catch (SystemException error) when (IsOfSocket(error)) {
            throw new IOException(error.Message, error);
        }
    }

    static bool IsOfSocket(Exception error) =>
        error is IOException || error is SocketException || error is ObjectDisposedException;

    int Arrived() {
        if (end == buffer.Length)
            MakeRoom(end - begin + ReadBytes);
        int count = Socket.Receive(buffer, end, buffer.Length - end, SocketFlags.None);
        if (count == 0)
            throw new IOException("the peer closed the connection");
        Acknowledge();
        return count;
    }

    Frame Take() {
        if (end - begin < HeadBytes)
            return null;
        uint length = BitConverter.ToUInt32(buffer, begin);
        byte kind = buffer[begin + 4];
        if (kind > Reply || length > PayloadBytesMax) {
            Socket.Close();
            throw new IOException($"a frame of kind {kind} and {length} bytes");
        }
        if (end - begin < HeadBytes + length) {
            MakeRoom(HeadBytes + (int)length);
            return null;
        }
        var frame = new Frame { Kind = kind, Number = BitConverter.ToUInt64(buffer, begin + 5) };
        frame.Payload = new byte[length];
        Buffer.BlockCopy(buffer, begin + HeadBytes, frame.Payload, 0, (int)length);
        begin += HeadBytes + (int)length;
        if (begin == end)
            begin = end = 0;
        return frame;
    }

    /// Moves unread bytes to the beginning of the buffer, and enlarges it if necessary.
    void MakeRoom(int bytes) {
        byte[] old = buffer;
        if (bytes > buffer.Length)
            buffer = new byte[bytes + ReadBytes];
        Buffer.BlockCopy(old, begin, buffer, 0, end - begin);
        end -= begin;
        begin = 0;
    }

    void Acknowledge() {
        if (quickAck) // Linux resets this mode by itself (tcp(7)), so it is set after every read
            SetOption(Socket, TcpLevel, QuickAck, 1);
    }
}
