using System;
using System.Runtime.InteropServices;

namespace Wattwire {
    /// Functions of libc that the class library lacks: clock and sleep in ns, descriptor 3, _exit.
    static class Libc {
        const int ClockMonotonic = 1;
        const int SetDescriptorFlags = 2; // F_SETFD
        const int CloseOnExec = 1; // FD_CLOEXEC
        const long SecondNs = 1000000000;

        struct Timespec { // IntPtr has the size of time_t and long
            public IntPtr Seconds, Nanoseconds;
        }

        public static long NowNs() {
            clock_gettime(ClockMonotonic, out Timespec time);
            return (long)time.Seconds * SecondNs + (long)time.Nanoseconds;
        }

        /// Sleeps for less than a second; a signal ends the sleep early.
        public static void Sleep(long ns) {
            long sleepNs = Math.Max(0, Math.Min(ns, SecondNs - 1));
            var duration = new Timespec { Nanoseconds = (IntPtr)sleepNs };
            nanosleep(ref duration, IntPtr.Zero);
        }

        /// Writes in one call, so lines of different threads do not mix.
        public static void Write(int descriptor, byte[] data) =>
            write(descriptor, data, (IntPtr)data.Length);

        public static void KeepFromChildren(int descriptor) =>
            fcntl(descriptor, SetDescriptorFlags, CloseOnExec);

        [DllImport("libc", EntryPoint = "_exit")]
        public static extern void Exit(int code);

        [DllImport("libc")]
        static extern int clock_gettime(int clock, out Timespec time);

        [DllImport("libc")]
        static extern int nanosleep(ref Timespec duration, IntPtr left);

        [DllImport("libc")]
        static extern IntPtr write(int descriptor, byte[] data, IntPtr count);

        [DllImport("libc")]
        static extern int fcntl(int descriptor, int command, int flags);
    }
}
