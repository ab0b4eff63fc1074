package proxy

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"redrive/capture"
)

// errServerSpeaks says that it is the client's turn, and the server that has something to say.
var errServerSpeaks = errors.New("the server speaks")

const (
	// promptly is how soon clients answer, as a rule: until then only they are listened to.
	promptly = 20 * time.Millisecond
	// leastAnswerTime is a bit less than the connect_timeout that servers give a client by default for each answer, 10 s.
	leastAnswerTime = 7500 * time.Millisecond
)

// passed is a deadline that is over.
var passed = time.Unix(1, 0)

func (p *Proxy) loginTimeout() time.Duration {
	if p.LoginTimeout == 0 {
		return time.Minute
	}
	return p.LoginTimeout
}

// answerTime is what a client's program gets for each of its answers. A server that has waited for longer ends the login
// itself, and holds that against our host.
func (p *Proxy) answerTime() time.Duration {
	all := p.loginTimeout()
	return min(all, max(leastAnswerTime, all/8))
}

func (p *Proxy) maxLoginPacket() int {
	if p.MaxLoginPacket == 0 {
		return 1 << 20
	}
	return p.MaxLoginPacket
}

// loginTime is what is left for the login: it counts from accept, or from the end of the PROXY header where there is one.
func (c *conn) loginTime() time.Duration {
	all := c.proxy.loginTimeout()
	if c.proxy.wantsHeader(addrPort(c.client.RemoteAddr()).Addr()) {
		return all
	}
	return max(0, all-(c.proxy.Clock.Now()-c.accepted))
}

// expire ends what the login waits for, whatever that is.
func (l *loginShell) expire(c *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.over {
		return
	}
	l.late = true
	c.client.SetDeadline(passed)
	c.server.SetDeadline(passed)
}

// stopLimit has the limit apply no more.
func (l *loginShell) stopLimit() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return
	}
	l.over = true
	l.expired = !l.limit.Stop()
	if l.late {
		l.client.SetDeadline(time.Time{})
		l.server.SetDeadline(time.Time{})
	}
}

func (l *loginShell) isLate() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.late
}

// deadline sets a deadline for reads and writes, unless the whole login's is over.
func (l *loginShell) deadline(conn net.Conn, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.late {
		conn.SetDeadline(at)
	}
}

func (l *loginShell) readDeadline(conn net.Conn, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.late {
		conn.SetReadDeadline(at)
	}
}

// readClient waits for the client's next packet. Most clients answer at once. Of those that do not, the server may come to
// have enough: then it is errServerSpeaks, which also says that the server has ended.
func (l *loginShell) readClient() ([]byte, error) {
	turn := time.Now()
	l.readDeadline(l.client, turn.Add(promptly))
	packet, err := l.clientIn.packet()
	if errors.Is(err, os.ErrDeadlineExceeded) && !l.isLate() {
		var until time.Time
		if !l.exchange.Interactive() {
			until = turn.Add(l.proxy.answerTime())
		}
		l.readDeadline(l.client, until)
		packet, err = l.readEither()
	}
	if err == nil {
		l.readDeadline(l.client, time.Time{})
	}
	return packet, err
}

// readEither waits for a packet of the client's, or for anything from the server.
func (l *loginShell) readEither() ([]byte, error) {
	heard := make(chan bool, 1)
	go func() {
		err := l.serverIn.await()
		spoke := !errors.Is(err, os.ErrDeadlineExceeded)
		if spoke {
			l.readDeadline(l.client, passed)
		}
		heard <- spoke
	}()
	packet, err := l.clientIn.packet()
	l.readDeadline(l.server, passed)
	spoke := <-heard
	l.readDeadline(l.server, time.Time{})
	if spoke && errors.Is(err, os.ErrDeadlineExceeded) {
		l.readDeadline(l.client, time.Time{})
		return nil, errServerSpeaks
	}
	return packet, err
}

// silent ends a login whose client keeps us waiting. It hears nothing: whatever came now would be read as the answer to
// what it may be about to say, under the wrong sequence id, or as TLS. Servers say nothing in that case either.
func (l *loginShell) silent() error {
	if l.isLate() {
		return l.tooLate()
	}
	return l.rejectLogin(fmt.Errorf("the client did not answer within %s", l.proxy.answerTime()))
}

// tooLate ends a login that takes too long. A client that waits for an answer gets one.
func (l *loginShell) tooLate() error {
	cause := l.overdue()
	if l.exchange.ClientTurn() {
		return l.rejectLogin(cause)
	}
	l.mu.Lock()
	l.totals.TimedOut++
	l.mu.Unlock()
	return l.perform(l.exchange.Refuse(cause.Error()), l.proxy.Clock.Now())
}

func (l *loginShell) overdue() error {
	return fmt.Errorf("the login was not over within %s", l.proxy.loginTimeout())
}

// rejectLogin ends a login without a word to the client.
func (l *loginShell) rejectLogin(cause error) error {
	l.warn(&l.proxy.logins.late, "login rejected", "client", l.origin, "error", cause)
	l.note(cause, capture.EndRejected)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.totals.Rejected++
	l.totals.TimedOut++
	l.record(&capture.SessionEnd{Reason: capture.EndRejected, Detail: cause.Error()})
	l.recorder, l.next = nil, nil // nothing comes after the end
	return errStopped
}
