//go:build linux

package epoll_test

import (
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"redrive/internal/epoll"
)

const key = 7

// detached is a connection over TCP whose near side is out of the runtime's poller.
func detached(t *testing.T) (fd int, far *net.TCPConn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	dialed, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dialed.Close() })
	near, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if fd, err = epoll.Detach(near); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	if _, err := near.Write([]byte("x")); err == nil {
		t.Error("the connection that was detached from can still be written to")
	}
	return fd, dialed.(*net.TCPConn)
}

func poller(t *testing.T) *epoll.Poller {
	t.Helper()
	p, err := epoll.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// next waits for events on the key, all of want among them.
func next(t *testing.T, p *epoll.Poller, want epoll.Events) {
	t.Helper()
	var got epoll.Events
	for got&want != want {
		events, _, err := p.Wait(10 * time.Second)
		if err != nil || len(events) == 0 {
			t.Fatalf("events %x until now, then %v and error %v; want %x", got, events, err, want)
		}
		for _, e := range events {
			if e.Key != key {
				t.Fatalf("an event of key %d, want %d", e.Key, key)
			}
			got |= e.Events
		}
	}
}

func TestBytesMakeOneEvent(t *testing.T) {
	fd, far := detached(t)
	p := poller(t)
	if _, err := far.Write([]byte("before")); err != nil {
		t.Fatal(err)
	}
	if err := p.Add(fd, key); err != nil {
		t.Fatal(err)
	}
	next(t, p, epoll.Readable) // what was there already
	if events, _, err := p.Wait(0); err != nil || len(events) > 0 {
		t.Errorf("events %v, error %v without new bytes, want none", events, err)
	}
	far.Write([]byte(" and after"))
	next(t, p, epoll.Readable)
	var buf [64]byte
	n, errno := epoll.Read(fd, buf[:])
	if string(buf[:n]) != "before and after" || errno != 0 {
		t.Errorf("read %q, %v", buf[:n], errno)
	}
	if _, errno := epoll.Read(fd, buf[:]); errno != syscall.EAGAIN {
		t.Errorf("reading on: %v, want EAGAIN", errno)
	}
	far.CloseWrite()
	next(t, p, syscall.EPOLLRDHUP)
	if n, errno := epoll.Read(fd, buf[:]); n != 0 || errno != 0 {
		t.Errorf("at the end: %d bytes, %v; want 0 and no error", n, errno)
	}
}

// A socket that is full takes what it can; when there is room again, an event says so.
func TestWriteToFullSocket(t *testing.T) {
	fd, far := detached(t)
	p := poller(t)
	if err := p.Add(fd, key); err != nil {
		t.Fatal(err)
	}
	next(t, p, epoll.Writable)
	data := make([]byte, 64<<20) // more than the buffers of two sockets hold
	n, errno := epoll.Write(fd, data)
	if errno != syscall.EAGAIN || n == 0 || n == len(data) {
		t.Fatalf("wrote %d of %d bytes, %v; want some and EAGAIN", n, len(data), errno)
	}
	read := make(chan int)
	go func() {
		total := 0
		buf := make([]byte, 1<<20)
		for total < len(data) {
			n, err := far.Read(buf)
			if err != nil {
				break
			}
			total += n
		}
		read <- total
	}()
	for n < len(data) {
		next(t, p, epoll.Writable)
		more, errno := epoll.Write(fd, data[n:])
		if errno != 0 && errno != syscall.EAGAIN {
			t.Fatal(errno)
		}
		n += more
	}
	if got := <-read; got != len(data) {
		t.Errorf("%d bytes arrived, want %d", got, len(data))
	}
}

func TestWriteToAPeerThatIsGone(t *testing.T) {
	fd, far := detached(t)
	far.SetLinger(0)
	far.Close()
	p := poller(t)
	if err := p.Add(fd, key); err != nil {
		t.Fatal(err)
	}
	next(t, p, syscall.EPOLLHUP)
	if _, errno := epoll.Write(fd, []byte("x")); errno != syscall.ECONNRESET && errno != syscall.EPIPE {
		t.Errorf("writing: %v, want ECONNRESET or EPIPE", errno)
	}
}

func TestWake(t *testing.T) {
	p := poller(t)
	for range 3 {
		p.Wake()
		p.Wake() // as one
		if _, woken, err := p.Wait(10 * time.Second); !woken || err != nil {
			t.Fatalf("woken %v, error %v", woken, err)
		}
		if _, woken, err := p.Wait(0); woken || err != nil {
			t.Fatalf("woken %v again, error %v", woken, err)
		}
	}
}

// No wake is lost, however many come at a time: each one's news is seen without another wake.
func TestWakesAtOnce(t *testing.T) {
	const wakers, each = 4, 20000
	p := poller(t)
	var news, seen atomic.Int64
	var ended atomic.Bool
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			_, _, err := p.Wait(-1)
			if err != nil || ended.Load() {
				return
			}
			seen.Store(news.Load())
		}
	}()
	var wg sync.WaitGroup
	for range wakers {
		wg.Go(func() {
			for range each {
				n := news.Add(1)
				p.Wake()
				for wait := time.Now().Add(10 * time.Second); seen.Load() < n; runtime.Gosched() {
					if time.Now().After(wait) {
						t.Errorf("news %d of %d not seen within 10 s", n, wakers*each)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	ended.Store(true)
	p.Wake()
	select {
	case <-over:
	case <-time.After(10 * time.Second):
		t.Fatal("the last wake was lost")
	}
}

// The garbage collector stops the world. A thread in a system call that the scheduler does not know of is stopped by a signal
// alone, and then has to yield: a loop that only went on waiting would keep the collector, and with it the program, for ever.
func TestWaitDoesNotHoldUpTheCollector(t *testing.T) {
	fd, far := detached(t)
	p := poller(t)
	if err := p.Add(fd, key); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			if _, woken, err := p.Wait(-1); woken || err != nil {
				return
			}
			var buf [64]byte
			epoll.Read(fd, buf[:])
		}
	}()
	for range 200 { // in the busy form of waiting, which traffic keeps up, as in the gentle one
		far.Write([]byte("traffic"))
		runtime.GC()
	}
	p.Wake()
	<-ended
}

func BenchmarkRoundTrip(b *testing.B) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		b.Fatal(err)
	}
	p, err := epoll.New()
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	p.Add(fds[0], key)
	var buf [64]byte
	b.ReportAllocs()
	for b.Loop() {
		epoll.Write(fds[1], buf[:])
		p.Wait(-1)
		epoll.Read(fds[0], buf[:])
	}
	syscall.Close(fds[0])
	syscall.Close(fds[1])
}
