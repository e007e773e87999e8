package wattwire

import (
	"syscall"
	"time"
	"unsafe"
)

const (
	clockMonotonic = 1
	timerAbsTime   = 1
)

// beganNs is when this process began, for READY's startup_ns (C-07).
var beganNs = NowNs()

// NowNs reads CLOCK_MONOTONIC in ns, without a system call.
//
//go:linkname NowNs runtime.nanotime
func NowNs() int64

// sleep returns at a time of the clock, or when a signal comes. The runtime's own timers are up to
// a millisecond late.
func sleep(untilNs int64) {
	wake := syscall.NsecToTimespec(untilNs)
	// Its error is that of a signal: whoever waits looks at the clock again.
	_, _, _ = syscall.Syscall6(syscall.SYS_CLOCK_NANOSLEEP, clockMonotonic, timerAbsTime,
		uintptr(unsafe.Pointer(&wake)), 0, 0, 0)
}

// poll returns when something holds; it looks every two milliseconds.
func poll(holds func() bool) {
	for !holds() {
		time.Sleep(2 * time.Millisecond)
	}
}
