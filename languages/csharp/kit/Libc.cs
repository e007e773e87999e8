using System;
using System.Runtime.InteropServices;

namespace Wattwire {
    /// What the class library lacks: a clock and a sleep in ns, descriptor 3, an end at once.
    static class Libc {
        const int ClockMonotonic = 1;
        const int SetDescriptorFlags = 2; // F_SETFD
        const int CloseOnExec = 1; // FD_CLOEXEC
        const long SecondNs = 1000000000;

        struct Timespec { // as wide as time_t and long
            public IntPtr Seconds, Nanoseconds;
        }

        public static long NowNs() {
            clock_gettime(ClockMonotonic, out Timespec time);
            return (long)time.Seconds * SecondNs + (long)time.Nanoseconds;
        }

        /// Sleeps for less than a second; shorter where a signal comes.
        public static void Sleep(long ns) {
            long within = Math.Max(0, Math.Min(ns, SecondNs - 1));
            var wanted = new Timespec { Nanoseconds = (IntPtr)within };
            nanosleep(ref wanted, IntPtr.Zero);
        }

        /// Writes in one call, so that the lines of threads do not mix.
        public static void Write(int descriptor, byte[] data) =>
            write(descriptor, data, (IntPtr)data.Length);

        public static void KeepFromChildren(int descriptor) =>
            fcntl(descriptor, SetDescriptorFlags, CloseOnExec);

        [DllImport("libc", EntryPoint = "_exit")]
        public static extern void Exit(int code);

        [DllImport("libc")]
        static extern int clock_gettime(int clock, out Timespec time);

        [DllImport("libc")]
        static extern int nanosleep(ref Timespec wanted, IntPtr left);

        [DllImport("libc")]
        static extern IntPtr write(int descriptor, byte[] data, IntPtr count);

        [DllImport("libc")]
        static extern int fcntl(int descriptor, int command, int flags);
    }
}
