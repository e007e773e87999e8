// Written by tools/generate_constants.py from contract/schemas; make constants writes it anew.
using System;
using System.IO;

namespace Wattwire {
    static class Constants {
        public const int Version = 2;
        public const long UnknownNs = -9223372036854775808;
        public const ushort UnknownPeer = 65535;
        public const ulong ProbeCounter = 281474976710655;
        public const string FileMagic = "WATTWIRE";
        public const ushort FileVersion = 1;
        public const byte FileClock = 1;
        public const ushort HeaderBytes = 64;
        public const ushort RecordBytes = 40;

        /// In the order of their codes (C-24).
        public static readonly string[] Roles = {
            "publisher",
            "subscriber",
            "server",
            "client",
            "action_server",
            "action_client",
            "ping",
            "pong",
        };

        /// Those that keep a schedule.
        public static readonly string[] SendingRoles = {
            "publisher",
            "client",
            "action_client",
            "ping",
        };
    }

    /// Of C-25.
    enum SampleKind : byte {
        Message = 0,
        Call = 1,
        Goal = 2,
        Accept = 3,
        Feedback = 4,
        Result = 5,
        Relay = 6,
    }

    /// Of C-25.
    [Flags]
    enum SampleFlags : byte {
        None = 0,
        WarmUp = 1,
        Failed = 2,
        Timeout = 4,
        Corrupt = 8,
    }

    /// A record of the sample file (C-25).
    struct Sample {
        public ulong Seq;
        public long IntendedNs;
        public long BeginNs;
        public long EndNs;
        public uint Bytes;
        public ushort Peer;
        public byte Kind;
        public byte Flags;

        public void Write(BinaryWriter file) {
            file.Write(Seq);
            file.Write(IntendedNs);
            file.Write(BeginNs);
            file.Write(EndNs);
            file.Write(Bytes);
            file.Write(Peer);
            file.Write(Kind);
            file.Write(Flags);
        }
    }

    /// What a run asks of its node; the contract's table has what each key means.
    public sealed partial class Spec {
        public long Contract { get; set; }
        public string Run { get; set; }
        public string Cell { get; set; }
        public string Pattern { get; set; }
        public string Role { get; set; }
        public long Node { get; set; }
        public long Index { get; set; }
        public long[] PeersNodes { get; set; }
        public long PeersCount { get; set; }
        public string[] PeersEndpoints { get; set; }
        public string Loop { get; set; }
        public long PeriodNs { get; set; }
        public long PhaseNs { get; set; }
        public long DurationNs { get; set; }
        public long Count { get; set; }
        public long CountBeyond { get; set; }
        public long WarmupNs { get; set; }
        public long OverrunNs { get; set; }
        public long TimeoutNs { get; set; }
        public long OutstandingMax { get; set; }
        public long QuietMs { get; set; }
        public long LingerMs { get; set; }
        public long ReadyTimeoutMs { get; set; }
        public string Pacing { get; set; }
        public long SpinNs { get; set; }
        public long PayloadBytes { get; set; }
        public string PayloadEncoding { get; set; }
        public long PayloadSeed { get; set; }
        public string PayloadLiteral { get; set; }
        public string Reply { get; set; }
        public string ReplyLiteral { get; set; }
        public string Verify { get; set; }
        public long ActionFeedback { get; set; }
        public long RecordCapacity { get; set; }
        public string TlsAuthority { get; set; }
        public string TlsCertificate { get; set; }
        public string TlsKey { get; set; }

        void ReadKeys(KeyReader keys) {
            Contract = keys.Integer("contract");
            Run = keys.Text("run");
            Cell = keys.Text("cell");
            Pattern = keys.Text("pattern");
            Role = keys.Text("role");
            Node = keys.Integer("node");
            Index = keys.Integer("index");
            PeersNodes = keys.Integers("peers.nodes");
            PeersCount = keys.Integer("peers.count");
            PeersEndpoints = keys.Texts("peers.endpoints");
            Loop = keys.Text("loop");
            PeriodNs = keys.Integer("period_ns");
            PhaseNs = keys.Integer("phase_ns");
            DurationNs = keys.Integer("duration_ns");
            Count = keys.Integer("count");
            CountBeyond = keys.Integer("count_beyond");
            WarmupNs = keys.Integer("warmup_ns");
            OverrunNs = keys.Integer("overrun_ns");
            TimeoutNs = keys.Integer("timeout_ns");
            OutstandingMax = keys.Integer("outstanding_max");
            QuietMs = keys.Integer("quiet_ms");
            LingerMs = keys.Integer("linger_ms");
            ReadyTimeoutMs = keys.Integer("ready_timeout_ms");
            Pacing = keys.Text("pacing");
            SpinNs = keys.Integer("spin_ns");
            PayloadBytes = keys.Integer("payload.bytes");
            PayloadEncoding = keys.Text("payload.encoding");
            PayloadSeed = keys.Integer("payload.seed");
            PayloadLiteral = keys.Text("payload.literal");
            Reply = keys.Text("reply");
            ReplyLiteral = keys.Text("reply.literal");
            Verify = keys.Text("verify");
            ActionFeedback = keys.Integer("action.feedback");
            RecordCapacity = keys.Integer("record.capacity");
            TlsAuthority = keys.Text("tls.authority");
            TlsCertificate = keys.Text("tls.certificate");
            TlsKey = keys.Text("tls.key");
        }
    }
}
