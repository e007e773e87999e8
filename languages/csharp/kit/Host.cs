using System;
using System.IO;
using System.Linq;
using System.Runtime.InteropServices;
using System.Text;
using Newtonsoft.Json;
using Newtonsoft.Json.Linq;

namespace Wattwire {
    /// What the class library lacks: the contract's clock, short sleeps, descriptor 3, a prompt end.
    public static class Host {
        const int ClockMonotonic = 1, Lines = 3, SetDescriptorFlags = 2, CloseOnExec = 1;
        static readonly object oneLine = new object();

        static Host() { fcntl(Lines, SetDescriptorFlags, CloseOnExec); }

        struct Timespec { public IntPtr Seconds, Nanoseconds; } // as wide as time_t and long

        [DllImport("libc")] static extern int clock_gettime(int clock, out Timespec time);
        [DllImport("libc")] static extern int nanosleep(ref Timespec wanted, IntPtr left);
        [DllImport("libc")] static extern int fcntl(int descriptor, int command, int argument);
        [DllImport("libc")] static extern IntPtr write(int descriptor, byte[] data, IntPtr count);
        [DllImport("libc", EntryPoint = "_exit")] public static extern void Exit(int code);

        /// CLOCK_MONOTONIC in ns; Stopwatch has ticks of 100 ns.
        public static long Now() {
            clock_gettime(ClockMonotonic, out Timespec time);
            return (long)time.Seconds * 1000000000 + (long)time.Nanoseconds;
        }

        /// Sleeps for `ns` and less than a second; shorter where a signal comes.
        public static void Sleep(long ns) {
            var wanted = new Timespec { Nanoseconds = (IntPtr)Math.Max(0, Math.Min(ns, 999999999)) };
            nanosleep(ref wanted, IntPtr.Zero);
        }

        public static void Line(string keyword, object fields) {
            string text = keyword + " " + JsonConvert.SerializeObject(fields) + "\n";
            byte[] data = Encoding.UTF8.GetBytes(text);
            lock (oneLine)
                if ((long)write(Lines, data, (IntPtr)data.Length) != data.Length)
                    Exit(4); // nobody is left to be told
        }
    }

    /// Ends the node: 2 the spec is refused, 3 the cell cannot, 4 the middleware failed.
    public sealed class NodeError : Exception {
        public int Code = 4;
        public string Key;

        public NodeError(string reason) : base(reason) { }
    }

    /// Refuses a spec that would be misread (C-02); the harness has checked the rest.
    public static class Spec {
        // NAME:TYPE; i integer, s string, b boolean, I and S lists of them. Settings likewise.
        const string Keys =
            "contract:2 run:s cell:s pattern:s role:s node:i index:i peers.nodes:I peers.count:i " +
            "peers.endpoints:S loop:s period_ns:i phase_ns:i duration_ns:i count:i warmup_ns:i " +
            "overrun_ns:i timeout_ns:i outstanding_max:i quiet_ms:i linger_ms:i " +
            "ready_timeout_ms:i pacing:s spin_ns:i payload.bytes:i payload.encoding:s " +
            "payload.seed:i payload.literal:s reply:s reply.literal:s verify:s " +
            "action.feedback:i record.capacity:i tls.authority:s tls.certificate:s tls.key:s";

        public static JObject Read(string path, string settings) {
            var types = settings.Split(' ').Where(text => text != "").Select(text => "settings." + text)
                .Concat(Keys.Split(' ')).ToDictionary(text => text.Split(':')[0], text => text.Last());
            // A string that looks like a date is to stay a string.
            var plain = new JsonSerializerSettings { DateParseHandling = DateParseHandling.None };
            JObject found;
            try {
                found = (JObject)JsonConvert.DeserializeObject(File.ReadAllText(path), plain);
            } catch (Exception error) {
                throw Refused("--spec", path, "a JSON object (" + error.Message + ")");
            }
            foreach (string key in types.Keys.Union(found.Properties().Select(entry => entry.Name)))
                if (!types.ContainsKey(key))
                    throw Refused(key, found[key], "no such key");
                else if (!Fits(found[key], types[key]))
                    throw Refused(key, found[key], "type " + types[key]);
            return found;
        }

        static bool Fits(JToken token, char type) {
            if (type == 'I' || type == 'S')
                return token is JArray && token.All(item => Fits(item, char.ToLowerInvariant(type)));
            object value = (token as JValue)?.Value;
            return type == 'i' ? value is long : type == 's' ? value is string
                : type == 'b' ? value is bool : Equals(value, 2L);
        }

        static NodeError Refused(string key, object found, string allowed) =>
            new NodeError($"spec: {key}: found {found ?? "nothing"}; allowed: {allowed}") {
                Code = 2, Key = key };
    }
}
