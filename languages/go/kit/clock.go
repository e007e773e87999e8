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

// beganNs is the start time of this process, for READY's startup_ns (C-07).
var beganNs = NowNs()

// NowNs reads CLOCK_MONOTONIC in ns, without a system call.
//
//go:linkname NowNs runtime.nanotime
func NowNs() int64

// sleep returns at the given time of the clock, or earlier at a signal. The runtime's own timers
// are up to a millisecond late.
func sleep(untilNs int64) {
	wake := syscall.NsecToTimespec(untilNs)
	// The only error is a signal, after which the caller reads the clock again.
	_, _, _ = syscall.Syscall6(syscall.SYS_CLOCK_NANOSLEEP, clockMonotonic, timerAbsTime,
		uintptr(unsafe.Pointer(&wake)), 0, 0, 0)
}

// poll checks a condition every two milliseconds, and returns when it is true.
func poll(isTrue func() bool) {
	for !isTrue() {
		time.Sleep(2 * time.Millisecond)
	}
}
