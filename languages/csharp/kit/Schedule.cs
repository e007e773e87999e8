using System;

namespace Wattwire {
    /// Computes the due times of messages, and assigns each message to one worker (C-10, C-11).
    sealed class Schedule {
        const long NapNs = 50000000; // maximum time between two checks for STOP
        readonly object turn = new object(); // held by the worker that waits for the next due time
        readonly Window window;
        readonly bool isClosed;
        readonly long phaseNs, periodNs, spinNs, latestNs, messagesMax;
        long next;

        public readonly long Scheduled;

        public Schedule(Spec spec, Window window) {
            this.window = window;
            isClosed = spec.Loop == "closed";
            spinNs = spec.SpinNs;
            latestNs = Window.Never;
            Scheduled = spec.Count;
            if (!isClosed) {
                phaseNs = spec.PhaseNs;
                periodNs = spec.PeriodNs;
                latestNs = spec.DurationNs + spec.OverrunNs;
                long spanNs = spec.DurationNs - phaseNs;
                Scheduled = Math.Max(0, (spanNs + periodNs - 1) / periodNs);
            }
            messagesMax = Scheduled + spec.CountBeyond;
        }

        /// Waits until the next message is due, or returns false if no message follows.
        public bool Await(out long counter, out long intendedNs, out long beginNs) {
            lock (turn) {
                long startNs = window.StartNs;
                long dueNs = startNs + phaseNs + next * periodNs;
                counter = next;
                beginNs = intendedNs = 0;
                if (next >= messagesMax || !SleepUntil(dueNs, out beginNs)
                        || beginNs - startNs > latestNs)
                    return false;
                if (next == Scheduled) {
                    Lines.Print("COUNTED", new { });
                    beginNs = Libc.NowNs();
                }
                intendedNs = isClosed ? beginNs : dueNs;
                next++;
                return true;
            }
        }

        bool SleepUntil(long dueNs, out long nowNs) {
            while ((nowNs = Libc.NowNs()) < dueNs && !window.IsOver) {
                long leftNs = dueNs - spinNs - nowNs;
                if (leftNs > 0)
                    Libc.Sleep(Math.Min(leftNs, NapNs));
            }
            return !window.IsOver;
        }
    }
}
