using System;
using System.IO;
using System.Text;
using System.Threading;
using Newtonsoft.Json;

namespace Wattwire {
    /// What the process ends with.
    public enum ExitCode {
        Done = 0,
        BadSpec = 2,
        Unsupported = 3,
        MiddlewareFailed = 4,
        InputEnded = 5,
    }

    /// Ends the node. `Key` is that of the spec where the spec is refused.
    public sealed class NodeError : Exception {
        public readonly ExitCode Code;
        public readonly string Key;

        public NodeError(ExitCode code, string reason, string key = null) : base(reason) {
            Code = code;
            Key = key;
        }
    }

    /// The lines that a node prints (C-05).
    static class Lines {
        const int Descriptor = 3;

        public static void KeepFromChildren() => Libc.KeepFromChildren(Descriptor);

        public static void Print(string keyword, object fields) {
            string line = keyword + " " + JsonConvert.SerializeObject(fields) + "\n";
            Libc.Write(Descriptor, Encoding.UTF8.GetBytes(line));
        }

        /// Prints ERROR and ends the process.
        public static void Fail(Exception error) {
            NodeError known = error as NodeError
                ?? new NodeError(ExitCode.MiddlewareFailed, error.ToString());
            Print("ERROR", new { code = known.Code, key = known.Key, reason = known.Message });
            Libc.Exit((int)known.Code);
        }
    }

    /// The time from GO to STOP, as standard input tells it.
    sealed class Window {
        public const long Never = long.MaxValue;
        readonly ManualResetEvent goOrStop = new ManualResetEvent(false);
        readonly ManualResetEvent stop = new ManualResetEvent(false);
        volatile bool isOver;

        public long StartNs { get; private set; } = Never;
        public long StopNs { get; private set; } = Never;
        public bool IsOver => isOver;

        /// Waits for GO, or for STOP without it.
        public void AwaitStart() => goOrStop.WaitOne();

        public void AwaitStop() => stop.WaitOne();

        /// Obeys standard input until it ends, and then ends the process (C-08, C-09).
        public void ReadInput() {
            var input = new StreamReader(Console.OpenStandardInput());
            for (string line; (line = input.ReadLine()) != null; )
                Obey(line);
            Libc.Exit((int)ExitCode.InputEnded);
        }

        void Obey(string line) {
            if (line == "STOP")
                Stop();
            else if (line.StartsWith("GO ") && long.TryParse(line.Substring(3), out long wantedNs)
                    && wantedNs > Libc.NowNs())
                Go(wantedNs);
            else
                throw new NodeError(ExitCode.BadSpec,
                    line + "; allowed: STOP, GO and a time to come", "GO");
        }

        public void Go(long atNs) {
            StartNs = atNs;
            goOrStop.Set();
        }

        void Stop() {
            StopNs = Libc.NowNs();
            isOver = true;
            goOrStop.Set();
            stop.Set();
        }
    }
}
