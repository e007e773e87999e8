//! Clocks in nanoseconds, and sleeping until an absolute time.

use serde_json::{json, Value};

#[allow(clippy::unnecessary_cast)] // the fields are 32 bits wide on 32-bit machines
pub fn read_ns(clock: libc::clockid_t) -> Option<i64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` outlives the call.
    if unsafe { libc::clock_gettime(clock, &mut time) } != 0 {
        return None;
    }
    Some(time.tv_sec as i64 * 1_000_000_000 + time.tv_nsec as i64)
}

/// Returns CLOCK_MONOTONIC in ns, the clock of all times in the protocol.
pub fn monotonic_ns() -> i64 {
    read_ns(libc::CLOCK_MONOTONIC).unwrap_or(0)
}

/// Returns the CPU time in ns of all threads of a process, including ended threads. Returns None if
/// the process has ended.
pub fn process_cpu_ns(pid: i32) -> Option<i64> {
    let mut clock: libc::clockid_t = 0;
    // SAFETY: `clock` outlives the call.
    if unsafe { libc::clock_getcpuclockid(pid, &mut clock) } != 0 {
        return None;
    }
    read_ns(clock)
}

/// Sleeps until CLOCK_MONOTONIC reaches `deadline_ns`, even if a signal arrives.
pub fn sleep_until(deadline_ns: i64) {
    let deadline = libc::timespec {
        tv_sec: (deadline_ns / 1_000_000_000) as _,
        tv_nsec: (deadline_ns % 1_000_000_000) as _,
    };
    loop {
        // SAFETY: `deadline` outlives the call; an absolute sleep needs no remainder.
        let rc = unsafe {
            libc::clock_nanosleep(
                libc::CLOCK_MONOTONIC,
                libc::TIMER_ABSTIME,
                &deadline,
                std::ptr::null_mut(),
            )
        };
        if rc != libc::EINTR {
            return;
        }
    }
}

/// Returns `count` readings of (monotonic, realtime, boottime, monotonic). The reading with the
/// smallest difference of its monotonic times relates the clocks best. A change of boottime minus
/// monotonic shows a suspend.
pub fn triples(count: usize) -> Vec<Value> {
    let mut readings = Vec::with_capacity(count);
    for _ in 0..count {
        let before = monotonic_ns();
        let realtime = read_ns(libc::CLOCK_REALTIME).unwrap_or(0);
        let boottime = read_ns(libc::CLOCK_BOOTTIME).unwrap_or(0);
        readings.push((before, realtime, boottime, monotonic_ns()));
    }
    readings
        .into_iter()
        .map(|(before, realtime, boottime, after)| {
            json!({"monotonic_ns": before, "realtime_ns": realtime, "boottime_ns": boottime,
                   "monotonic_after_ns": after})
        })
        .collect()
}

/// Returns how the kernel adjusts its clocks (adjtimex): the correction of the rate, the offset
/// that it still corrects, and whether it takes the clock as synchronised. All are null if the
/// kernel does not permit the reading.
#[allow(clippy::unnecessary_cast)] // the fields are 32 bits wide on 32-bit machines
pub fn adjustment() -> Value {
    // SAFETY: a timex of zeros requests no change, and outlives the call.
    let (state, timex) = unsafe {
        let mut timex: libc::timex = std::mem::zeroed();
        (libc::adjtimex(&mut timex), timex)
    };
    let known = (state >= 0).then_some(timex);
    let ns_per_step = |status| if status & libc::STA_NANO != 0 { 1 } else { 1000 };
    json!({
        "rate_ppm": known.map(|known| known.freq as f64 / 65536.0),
        "tick_us": known.map(|known| known.tick as i64),
        "offset_ns": known.map(|known| known.offset as i64 * ns_per_step(known.status)),
        "error_us_max": known.map(|known| known.maxerror as i64),
        "synchronised": known.map(|known| {
            state != libc::TIME_ERROR && known.status & libc::STA_UNSYNC == 0
        }),
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_kernel_reports_its_correction_of_the_clock() {
        let adjustment = super::adjustment();
        assert!(adjustment["rate_ppm"].as_f64().unwrap().abs() <= 500.0);
        assert!((9_000..=11_000).contains(&adjustment["tick_us"].as_i64().unwrap()));
    }
}
