package epoll

import (
	"errors"
	"fmt"
	"math/bits"
	"runtime"
	"syscall"
	"unsafe"
)

// A cpuSet is the kernel's set of CPUs, large enough for any machine it is built for.
type cpuSet [8192 / 64]uint64

// PinThread binds the calling goroutine to its thread, and the thread to one of the CPUs that the process may run on: number n
// of them, from 0, and from the first again where there are fewer. The thread ends with the goroutine; those that the
// runtime makes meanwhile are not bound, as it does not make them from one that is locked.
func PinThread(n int) error {
	runtime.LockOSThread()
	var all cpuSet
	size, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_GETAFFINITY, 0, unsafe.Sizeof(all), uintptr(unsafe.Pointer(&all)))
	if errno != 0 {
		return fmt.Errorf("sched_getaffinity: %w", errno)
	}
	one, ok := all.pick(n)
	if !ok {
		return errors.New("sched_getaffinity: an empty set of CPUs")
	}
	if _, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, 0, size, uintptr(unsafe.Pointer(&one))); errno != 0 {
		return fmt.Errorf("sched_setaffinity: %w", errno)
	}
	return nil
}

// pick is the set of member n alone, counted round and round.
func (s *cpuSet) pick(n int) (one cpuSet, ok bool) {
	count := 0
	for _, word := range s {
		count += bits.OnesCount64(word)
	}
	if count == 0 {
		return one, false
	}
	n %= count
	for i, word := range s {
		for ; word != 0; word &= word - 1 {
			if n == 0 {
				one[i] = word & -word
				return one, true
			}
			n--
		}
	}
	return one, false
}
