package synth

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"redrive/capture"
	"redrive/internal/wire"
)

// longestInsert is how long an INSERT of many rows grows, in bytes.
const longestInsert = 512 << 10

// Prepare makes and fills the tables: as many at a time as there are threads, each from one connection. Errors are never
// ignored. A seed gives every table the same rows, however many threads there are.
func (r *Runner) Prepare(ctx context.Context) error {
	return r.tables(ctx, "sysbench.cmdline.call_command", r.Threads, func(c *conn, out *lineWriter, table int, seed uint64) error {
		return r.prepareTable(c, out, table, seed)
	})
}

// Cleanup drops the tables, in order, from one connection.
func (r *Runner) Cleanup(ctx context.Context) error {
	return r.tables(ctx, "cleanup", 1, func(c *conn, out *lineWriter, table int, _ uint64) error {
		out.printf("Dropping table '%s'...\n", tableName(table))
		return r.ddl(c, "cleanup", "DROP TABLE IF EXISTS "+tableName(table))
	})
}

// tables calls f for every table, from some connections at a time. function is what sysbench calls the place where
// errors come up.
func (r *Runner) tables(ctx context.Context, function string, connections int, f func(c *conn, out *lineWriter, table int, seed uint64) error) error {
	workload, err := NewWorkload(r.Name, r.Settings)
	if err != nil {
		return &Fatal{[]string{err.Error()}, 1}
	}
	run := r.newRun(workload)
	defer run.watch()()
	out := &lineWriter{w: r.Out}
	out.printf("%s", Banner(r.Version))
	if connections > 1 {
		out.printf("Initializing worker threads...\n\n")
	}
	working, stop := context.WithCancelCause(ctx) // the first error ends the others' work
	defer stop(nil)
	var g sync.WaitGroup
	connections = min(connections, r.Tables)
	for i := range connections {
		g.Go(func() {
			err := run.tablesFrom(working, function, i, connections, func(c *conn, table int) error { return f(c, out, table, run.seed) })
			if err != nil {
				stop(err)
			}
		})
	}
	g.Wait()
	if ctx.Err() != nil {
		return fatalf(1, "interrupted")
	}
	return context.Cause(working)
}

// tablesFrom is one connection's share: tables first+1, first+1+step, ….
func (r *run) tablesFrom(ctx context.Context, function string, first, step int, f func(c *conn, table int) error) (err error) {
	target := r.Targets[first%len(r.Targets)]
	c := r.newConn(first, uint64(first+1))
	if err := c.dial(ctx, target); err != nil {
		return r.connectFailed(target, function, err)
	}
	defer func() {
		if err != nil {
			c.end(capture.EndBroken, "")
			return
		}
		c.end(capture.EndQuit, "")
	}()
	for table := first + 1; table <= r.Tables && ctx.Err() == nil; table += step {
		if err := f(c, table); err != nil {
			return err
		}
	}
	return nil
}

func (r *Runner) prepareTable(c *conn, out *lineWriter, table int, seed uint64) error {
	const function = "sysbench.cmdline.call_command"
	name := tableName(table)
	out.printf("Creating table '%s'...\n", name)
	if err := r.ddl(c, function, createTable(name)); err != nil {
		return err
	}
	if r.TableSize > 0 {
		out.printf("Inserting %d records into '%s'\n", r.TableSize, name)
		rows := NewRandom(seed, "prepare", table, r.Distribution)
		if err := r.insert(c, function, name, rows); err != nil {
			return err
		}
	}
	out.printf("Creating a secondary index on '%s'...\n", name)
	return r.ddl(c, function, fmt.Sprintf("CREATE INDEX k_%d ON %s(k)", table, name))
}

func createTable(name string) string {
	return "CREATE TABLE " + name + `(
  id INTEGER NOT NULL AUTO_INCREMENT,
  k INTEGER DEFAULT '0' NOT NULL,
  c CHAR(120) DEFAULT '' NOT NULL,
  pad CHAR(60) DEFAULT '' NOT NULL,
  PRIMARY KEY (id)
) /*! ENGINE = innodb */ `
}

// insert fills a table by INSERTs of many rows, each a transaction of its own.
func (r *Runner) insert(c *conn, function, name string, rows *Random) error {
	head := "INSERT INTO " + name + "(k, c, pad) VALUES"
	text := append(make([]byte, 0, longestInsert), head...)
	var row []byte
	for range r.TableSize {
		row = appendRow(row[:0], rows, r.TableSize)
		if len(text)+len(",")+len(row)+len("\x00") > longestInsert { // sysbench counts a terminator
			if err := r.statement(c, function, text, true); err != nil {
				return err
			}
			text = append(text[:0], head...)
		}
		if len(text) > len(head) {
			text = append(text, ',')
		}
		text = append(text, row...)
	}
	return r.statement(c, function, text, true)
}

// appendRow appends one row's values: k, c, pad.
func appendRow(dst []byte, rows *Random, tableSize int) []byte {
	dst = strconv.AppendInt(append(dst, '('), int64(rows.Draw(1, tableSize)), 10)
	dst = rows.AppendDigits(append(dst, ", '"...), cGroups)
	dst = rows.AppendDigits(append(dst, "', '"...), padGroups)
	return append(dst, "')"...)
}

func (r *Runner) ddl(c *conn, function, text string) error {
	return r.statement(c, function, []byte(text), false)
}

// statement runs a text; bulk says that it is part of filling a table.
func (r *Runner) statement(c *conn, function string, text []byte, bulk bool) error {
	_, err := c.query(text)
	var e *wire.Error
	if err != nil {
		e = serverError(err)
	} else if e = c.LastError(); e == nil {
		return nil
	}
	fatal := r.queryFailed(function, "mysql_drv_query()", string(text), e)
	if bulk {
		fatal.Lines[len(fatal.Lines)-1] = r.functionFailed(function, "db_bulk_insert_next() failed")
	}
	return fatal
}
