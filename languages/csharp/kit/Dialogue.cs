using System;
using System.IO;
using System.Text;
using System.Threading;
using Newtonsoft.Json;

namespace Wattwire {
    /// The exit code of the process.
    public enum ExitCode {
        Done = 0,
        BadSpec = 2,
        Unsupported = 3,
        MiddlewareFailed = 4,
        InputEnded = 5,
    }

    /// An error that ends the node. `Key` is the rejected key of the spec, or null.
    public sealed class NodeError : Exception {
        public readonly ExitCode Code;
        public readonly string Key;

        public NodeError(ExitCode code, string reason, string key = null) : base(reason) {
            Code = code;
            Key = key;
        }
    }

    /// Prints the lines of a node (C-05).
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

    /// The time from GO to STOP, which standard input announces.
    sealed class Window {
        public const long Never = long.MaxValue;
        readonly ManualResetEvent goOrStop = new ManualResetEvent(false);
        readonly ManualResetEvent stop = new ManualResetEvent(false);
        volatile bool isOver;

        public long StartNs { get; private set; } = Never;
        public long StopNs { get; private set; } = Never;
        public bool IsOver => isOver;

        /// Waits for GO or STOP.
        public void AwaitStart() => goOrStop.WaitOne();

        public void AwaitStop() => stop.WaitOne();

        /// Reads GO and STOP from standard input; at its end, ends the process (C-08, C-09).
        public void ReadInput() {
            var input = new StreamReader(Console.OpenStandardInput());
            for (string line; (line = input.ReadLine()) != null; )
                Obey(line);
            Libc.Exit((int)ExitCode.InputEnded);
        }

        void Obey(string line) {
            if (line == "STOP")
                Stop();
            else if (line.StartsWith("GO ") && long.TryParse(line.Substring(3), out long startNs)
                    && startNs > Libc.NowNs())
                Go(startNs);
            else
                throw new NodeError(ExitCode.BadSpec,
                    $"found {line}; allowed: STOP, GO and a future time", "GO");
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
