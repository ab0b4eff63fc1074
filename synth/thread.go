package synth

import (
	"context"
	"errors"
	"fmt"
	"time"

	"redrive/capture"
	"redrive/internal/client"
	"redrive/internal/wire"
)

// Error numbers of a lost connection, as the client library gives them.
const errLost = 2013

// sqlStateGeneral is the SQLSTATE of errors that have none of their own.
const sqlStateGeneral = "HY000"

const reconnectEvery = time.Millisecond

// A thread is a worker: one connection, one stream of random numbers, one event after the other.
type thread struct {
	run    *run
	number int // from 0
	random *Random
	event  Event
	conn   *conn
	tally  tally
}

// start connects and prepares.
func (t *thread) start(ctx context.Context) error {
	if err := t.connect(ctx, uint64(t.number+1)); err != nil {
		return err
	}
	return t.prepare()
}

func (t *thread) target() client.Config { return t.run.Targets[t.number%len(t.run.Targets)] }

func (t *thread) connect(ctx context.Context, session uint64) error {
	t.conn = t.run.newConn(t.number, session)
	if err := t.conn.dial(ctx, t.target()); err != nil {
		return t.run.connectFailed(t.target(), "thread_init", err)
	}
	return nil
}

func (t *thread) prepare() error {
	if t.run.Text {
		return nil
	}
	err := t.conn.prepare(t.run.workload.Kinds())
	if err == nil {
		return nil
	}
	e := serverError(err)
	return fatalf(1, "mysql_stmt_prepare() failed", fmt.Sprintf("MySQL error: %d %q", e.Errno, e.Message),
		t.run.functionFailed("thread_init", "SQL API error"))
}

// work runs events until the run is over.
func (t *thread) work() error {
	for {
		due, ok := t.run.next()
		if !ok {
			return nil
		}
		t.run.busy.Add(1)
		err := t.do(due)
		t.run.busy.Add(-1)
		if err != nil || t.tally.unfinished {
			return err
		}
	}
}

// do runs one event that was due then. An ignored error makes it begin again from the top, with new random numbers and
// without a ROLLBACK, as sysbench does; unlike there, it does not begin again when the run is over.
func (t *thread) do(due time.Duration) error {
	intended := time.Duration(0)
	if t.run.arrivals != nil {
		intended = due
	}
	for {
		t.event.Reset()
		t.run.workload.Event(t.random, &t.event)
		again, err := t.statements(intended)
		switch {
		case err != nil:
			return err
		case !again:
			t.tally.event(t.run.Clock.Now() - due)
			return nil
		case t.run.over():
			t.tally.unfinished = true
			return nil
		}
		intended = 0
	}
}

// statements sends the event at hand. again says that an error that is to be ignored cut it short.
func (t *thread) statements(intended time.Duration) (again bool, err error) {
	for i := range t.event.Statements {
		s := &t.event.Statements[i]
		reply, err := t.conn.run(s, intended)
		intended = 0
		failed := err != nil || reply.Outcome.Errno != 0
		t.tally.kinds.add(s.Kind, t.conn.service(), failed)
		if failed {
			return t.failed(s, err)
		}
		t.tally.statement(&reply.Outcome)
	}
	return false, nil
}

// failed decides what becomes of an event after a statement failed; lost is the error of a lost connection.
func (t *thread) failed(s *Statement, lost error) (again bool, err error) {
	if lost != nil && t.run.hungUp() {
		t.tally.unfinished = true
		return true, nil
	}
	e := t.conn.LastError()
	if lost != nil {
		e = serverError(lost)
	}
	switch {
	case !t.run.IgnoreErrors.Has(e.Errno):
		return false, t.statementFailed(s, e)
	case lost != nil:
		return true, t.reconnect(lost)
	}
	t.tally.ignored.Add(1)
	return true, nil
}

// reconnect tries until it succeeds or the run is over.
func (t *thread) reconnect(lost error) error {
	t.conn.end(capture.EndServer, lost.Error())
	t.tally.reconnects.Add(1)
	for !t.run.over() {
		if err := t.connect(t.run.hangUpContext, t.run.sessions.Add(1)); err == nil {
			return t.prepare()
		}
		time.Sleep(reconnectEvery)
	}
	return nil // the caller sees that the run is over
}

// statementFailed is the end of the run because of a statement.
func (t *thread) statementFailed(s *Statement, e *wire.Error) error {
	function, text := "mysql_stmt_execute()", t.conn.texts[s.Kind][max(0, s.Table-1)]
	if t.run.Text || len(t.conn.ids[s.Kind]) == 0 {
		function, text = "mysql_drv_query()", s.AppendSQL(nil, text)
	}
	return t.run.queryFailed("thread_run", function, string(text), e)
}

// queryFailed is sysbench's word on a statement that failed.
func (r *Runner) queryFailed(scriptFunction, apiFunction, text string, e *wire.Error) *Fatal {
	const shown = 256 // of the text of a bulk INSERT
	if len(text) > shown {
		text = text[:shown] + "..."
	}
	state := e.SQLState
	if state == "" {
		state = sqlStateGeneral
	}
	return fatalf(1, fmt.Sprintf("%s returned error %d (%s) for query '%s'", apiFunction, e.Errno, e.Message, text),
		r.functionFailed(scriptFunction, fmt.Sprintf("SQL error, errno = %d, state = '%s': %s", e.Errno, state, e.Message)))
}

// connectFailed is sysbench's word on a connection that could not be made.
func (r *Runner) connectFailed(target client.Config, scriptFunction string, err error) *Fatal {
	e := serverError(err)
	if e.Errno == errLost {
		e = &wire.Error{Errno: 2002, Message: err.Error()}
	}
	return fatalf(1, fmt.Sprintf("unable to connect to MySQL server on %s, aborting...", place(target)),
		fmt.Sprintf("error %d: %s", e.Errno, e.Message), r.functionFailed(scriptFunction, "connection creation failed"))
}

// serverError is the server's own error if there is one in the chain, else that of a lost connection.
func serverError(err error) *wire.Error {
	var e *wire.Error
	if errors.As(err, &e) {
		return e
	}
	return &wire.Error{Errno: errLost, SQLState: sqlStateGeneral, Message: lostText(err)}
}
