package epoll

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// Events are what happened to a file descriptor.
type Events uint32

const (
	Readable Events = syscall.EPOLLIN
	Writable Events = syscall.EPOLLOUT
	HungUp   Events = syscall.EPOLLRDHUP | syscall.EPOLLHUP | syscall.EPOLLERR // the peer sends no more, or an error waits: read to learn which
)

// edges is what every descriptor is watched for. A writable edge comes only after a write that found no room, so asking
// for it costs nothing.
const edges = syscall.EPOLLIN | syscall.EPOLLOUT | syscall.EPOLLRDHUP | edgeTriggered

const edgeTriggered = 1 << 31

// wakeKey is the key of the descriptor that Wake writes to.
const wakeKey = -1

// patience is how long a wait holds on to its thread and its P. Traffic that pauses for longer can as well wait
// the way that costs a scheduler's hand-off but lets the process sleep.
const patience = 5 * time.Millisecond

// An Event is what happened to one file descriptor since the last event on it.
type Event struct {
	Key    int32 // as given to Add
	Events Events
}

// A Poller watches file descriptors, edge-triggered. Wait belongs to one goroutine; Add and Wake may be called by any.
type Poller struct {
	fd     int
	wake   int
	awake  atomic.Bool // a Wake has not been taken note of yet
	calm   bool        // the last wait found nothing for patience: wait the gentle way
	raw    [256]syscall.EpollEvent
	events [256]Event
}

// New returns a Poller to be closed after use.
func New() (*Poller, error) {
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll_create1: %w", err)
	}
	wake, _, errno := syscall.Syscall(syscall.SYS_EVENTFD2, 0, syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
	if errno != 0 {
		syscall.Close(fd)
		return nil, fmt.Errorf("eventfd2: %w", errno)
	}
	p := &Poller{fd: fd, wake: int(wake)}
	if err := p.watch(p.wake, wakeKey, syscall.EPOLLIN|edgeTriggered); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// Close gives the Poller's own descriptors back. Those it watched are left alone.
func (p *Poller) Close() {
	syscall.Close(p.wake)
	syscall.Close(p.fd)
}

// Add watches fd until it is closed. What there is already makes an event too. key, not negative, is what events on it bear.
func (p *Poller) Add(fd int, key int32) error { return p.watch(fd, key, edges) }

func (p *Poller) watch(fd int, key int32, events uint32) error {
	event := syscall.EpollEvent{Events: events, Fd: key}
	if err := syscall.EpollCtl(p.fd, syscall.EPOLL_CTL_ADD, fd, &event); err != nil {
		return fmt.Errorf("epoll_ctl: %w", err)
	}
	return nil
}

// Wake makes Wait return soon; what its caller did before is seen by who looks after that. It is cheap when it has been
// called already.
func (p *Poller) Wake() {
	if p.awake.Swap(true) {
		return
	}
	one := [8]byte{1}
	syscall.Write(p.wake, one[:])
}

// Wait returns what has happened, at the latest after limit, 0 for at once, negative for no limit; woken is
// true after a Wake. The slice is valid until the next Wait.
func (p *Poller) Wait(limit time.Duration) (events []Event, woken bool, err error) {
	n, err := p.wait(limit)
	if err != nil {
		return nil, false, err
	}
	events = p.events[:0]
	for _, e := range p.raw[:n] {
		if e.Fd == wakeKey {
			woken = true
			p.drainWake()
			continue
		}
		events = append(events, Event{Key: e.Fd, Events: Events(e.Events)})
	}
	return events, woken, nil
}

// drainWake makes the next Wake count. The flag comes last: a Wake before it need not make another event, as its caller's
// news is looked for after this; one that made an event which this then swallowed would leave the flag up for good.
func (p *Poller) drainWake() {
	var buf [8]byte
	syscall.Read(p.wake, buf[:])
	p.awake.Store(false)
}

// wait waits gently in calm times and otherwise with a system call that the scheduler does not see. A thread in such a
// call cannot be stopped for the garbage collector but by the runtime's preemption signal, which interrupts it: then it
// must yield, or the collector would wait for ever.
func (p *Poller) wait(limit time.Duration) (int, error) {
	var deadline time.Time
	if limit > 0 {
		deadline = time.Now().Add(limit)
	}
	for {
		if p.calm && limit != 0 {
			n, errno := p.gentle(milliseconds(limit))
			if errno == 0 {
				p.calm = n == 0
				return n, nil
			}
			if errno != syscall.EINTR {
				return 0, fmt.Errorf("epoll_pwait: %w", errno)
			}
		} else {
			short := patience
			if limit >= 0 {
				short = min(limit, patience)
			}
			n, errno := p.quick(milliseconds(short))
			switch {
			case errno == syscall.EINTR:
				runtime.Gosched()
			case errno != 0:
				return 0, fmt.Errorf("epoll_pwait: %w", errno)
			case n > 0 || limit == 0:
				return n, nil
			default:
				p.calm = short == patience
				runtime.Gosched()
			}
		}
		if limit > 0 {
			if limit = time.Until(deadline); limit <= 0 {
				return 0, nil
			}
		}
	}
}

// gentle lets the scheduler give the P to somebody else meanwhile.
func (p *Poller) gentle(timeout int) (int, syscall.Errno) {
	n, _, errno := syscall.Syscall6(syscall.SYS_EPOLL_PWAIT, uintptr(p.fd), uintptr(unsafe.Pointer(&p.raw[0])), uintptr(len(p.raw)), uintptr(timeout), 0, 0)
	return int(n), errno
}

func (p *Poller) quick(timeout int) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, uintptr(p.fd), uintptr(unsafe.Pointer(&p.raw[0])), uintptr(len(p.raw)), uintptr(timeout), 0, 0)
	return int(n), errno
}

// milliseconds is a limit as epoll takes it, rounded up: a wait that ends early would only begin again.
func milliseconds(limit time.Duration) int {
	if limit < 0 {
		return -1
	}
	return int((limit + time.Millisecond - 1) / time.Millisecond)
}
