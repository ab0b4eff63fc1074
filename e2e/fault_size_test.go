package e2e_test

import (
	"crypto/md5"
	"database/sql"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"redrive/capture"
	"redrive/internal/mysqltest"
)

// slack is what a process may take for other reasons than the one a test is about: garbage that is not collected yet.
const slack = 48 << 20

// room is slack where the account of --memory-limit is used up: the runtime collects garbage once there are 64 MiB of it
// beside the account, and counts neither code nor what the kernel holds for its threads.
const room = 96 << 20

// Statements of 80 MB, several at once and beside others, are answered as without a proxy, and recorded whole or as
// truncated, as their flags say. The proxy takes no more memory than --memory-limit beyond what relaying takes.
func TestFaultHugeStatements(t *testing.T) {
	const size, senders = 80_000_000, 3
	server := mysqltest.Start(t, "--max-allowed-packet=1G")
	rounds := pick(1, 10)
	for _, tt := range []struct {
		name  string
		flags []string
		limit int // bytes
		whole bool
	}{
		{"truncated", []string{"--memory-limit", "256MiB"}, 256 << 20, false},
		{"whole", []string{"--memory-limit", "1GiB", "--max-statement", "100000000"}, 1 << 30, true},
		{"beyond all memory", []string{"--memory-limit", "32MiB", "--max-statement", "100000000"}, 32 << 20, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bare := launch{lean: true}.start(t, "--backend", server.Addr, "--memory-limit", "1MiB")
			sendHuge(t, bare.addr, size, senders, rounds)
			relaying := bare.measure(t).peak
			bare.stop(t)
			file := filepath.Join(t.TempDir(), "huge.rdt")
			p := launch{lean: true}.start(t, append([]string{"--backend", server.Addr, "--out", file}, tt.flags...)...)
			m := startMeter(t, server)
			others := hire(t, p.addr, 2, small)
			sendHuge(t, p.addr, size, senders, rounds)
			others.dismiss(t)
			peak := p.measure(t).peak
			l, printed, err := settle(t, p, m)
			compareFile(t, file, l)
			t.Logf("at most %d MiB resident, %d MiB while relaying; %d shed", peak>>20, relaying>>20, l.Shed)
			if bound := tt.limit + relaying + room; peak > bound {
				t.Errorf("at most %d MiB resident, want %d MiB: --memory-limit, and %d MiB for relaying", peak>>20, bound>>20, (relaying+room)>>20)
			}
			if tt.whole && (err != nil || l.Shed > 0) {
				t.Errorf("there was memory enough, and yet: %v, %d shed\n%s", err, l.Shed, printed)
			}
			whole, truncated := hugeOnes(t, file, size)
			if got := uint64(whole + truncated); got+l.Shed < uint64(senders*rounds) || tt.whole && truncated > 0 || !tt.whole && whole > 0 {
				t.Errorf("%d statements of %d bytes recorded whole, %d truncated, %d shed; want %d, whole: %t", whole, size, truncated, l.Shed, senders*rounds, tt.whole)
			}
		})
	}
}

// sendHuge has several clients send statements of about size bytes and look at the server's answers.
func sendHuge(t *testing.T, addr string, size, senders, rounds int) {
	t.Helper()
	var sending sync.WaitGroup
	for i := range senders {
		sending.Go(func() {
			db := openDB(t, addr, "")
			defer db.Close()
			for round := range rounds {
				text, sum := hugeText(size, i*rounds+round)
				var got string
				if err := db.QueryRow(text).Scan(&got); err != nil || got != sum {
					t.Errorf("the server's answer to a statement of %d bytes: %q, %v, want %q", len(text), got, err, sum)
				}
			}
		})
	}
	sending.Wait()
}

// hugeText is a statement of size bytes that asks for the hash of what is in it, and the answer.
func hugeText(size, n int) (text, sum string) {
	const before, after = "SELECT MD5('", "')"
	line := fmt.Sprintf("%09d %s\n", n, strings.Repeat("so it goes on and on ", 20))
	content := strings.Repeat(line, size/len(line)+1)[:size-len(before)-len(after)]
	h := md5.Sum([]byte(content))
	return before + content + after, hex.EncodeToString(h[:])
}

// openDB is a pool of one connection at most through which statements of any size may be sent.
func openDB(t *testing.T, addr, schema string) *sql.DB {
	t.Helper()
	config := mysql.NewConfig()
	config.User, config.Passwd, config.Net, config.Addr, config.DBName = mysqltest.User, mysqltest.Password, "tcp", addr, schema
	config.MaxAllowedPacket = 1 << 30
	connector, err := mysql.NewConnector(config)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	return db
}

// hugeOnes counts the recorded statements of size bytes by whether their text is there, and checks what is said of them.
func hugeOnes(t *testing.T, file string, size int) (whole, truncated int) {
	t.Helper()
	for _, s := range statements(t, file) {
		isTruncated := s.Flags.Has(capture.Truncated)
		switch {
		case isTruncated && s.TextLen == uint64(size) && len(s.Text) < size:
			truncated++
		case isTruncated:
			t.Errorf("a statement of %d bytes is told to be truncated, with %d bytes of text", s.TextLen, len(s.Text))
		case len(s.Text) == size:
			whole++
		case len(s.Text) > 1000:
			t.Errorf("a statement of %d bytes is not told to be truncated, want %d", len(s.Text), size)
		}
	}
	return whole, truncated
}

// A statement that the server finds too long is refused through the proxy as without it, by the server's own words.
func TestFaultTooLongForServer(t *testing.T) {
	server := mysqltest.Start(t, "--max-allowed-packet=4M")
	eachRelay(t, func(t *testing.T, relay string) {
		file := filepath.Join(t.TempDir(), "long.rdt")
		p := startProxy(t, "--backend", server.Addr, relay, "--out", file)
		tries := pick(3, 50)
		direct, proxied := 0, 0
		for range tries {
			direct += refusedAsTooLong(t, server.Addr)
			proxied += refusedAsTooLong(t, p.addr)
		}
		p.stop(t)
		t.Logf("told why: %d of %d directly, %d through the proxy", direct, tries, proxied)
		if direct == 0 || proxied < direct {
			t.Errorf("of %d clients %d were told directly that their statement is too long, %d through the proxy", tries, direct, proxied)
		}
	})
}

// refusedAsTooLong is 1 if a statement longer than max_allowed_packet is answered by error 1153.
func refusedAsTooLong(t *testing.T, addr string) int {
	t.Helper()
	c := dial(t, addr)
	defer c.Close()
	text, _ := hugeText(pick(20_000_000, 80_000_000), 0)
	if _, _, err := c.Query(text); err == nil && c.LastError() != nil && c.LastError().Errno == 1153 {
		return 1
	}
	return 0
}

// Several clients that take their time over results of a GiB each get every byte; the proxy holds none of it, and
// others are served meanwhile.
func TestFaultSlowReaders(t *testing.T) {
	const readers = 4
	rows := pick(64, 1024) // of a MiB
	server := mysqltest.Shared(t)
	eachRelay(t, func(t *testing.T, relay string) {
		file := filepath.Join(t.TempDir(), "slow.rdt")
		p := launch{lean: true}.start(t, "--backend", server.Addr, relay, "--out", file)
		m := startMeter(t, server)
		window := pick(time.Second, 10*time.Second)
		alone := workFor(t, window, p.addr, 4, small)
		before := p.measure(t).peak

		resume := make(chan struct{})
		var stalled, reading sync.WaitGroup
		want := resultHash(rows)
		for range readers {
			stalled.Add(1)
			reading.Go(func() {
				if got, err := readSlowly(t, p.addr, rows, sync.OnceFunc(stalled.Done), resume); err != nil || got != want {
					t.Errorf("a slow reader got a result of hash %s, %v, want %s", got, err, want)
				}
			})
		}
		stalled.Wait()
		beside := workFor(t, window, p.addr, 4, small)
		close(resume)
		whileReading := hire(t, p.addr, 4, small)
		reading.Wait()
		if whileReading.dismiss(t) == 0 {
			t.Error("nobody was served while large results were read")
		}
		after := p.measure(t).peak
		settleWhole(t, p, m)
		t.Logf("%d statements alone, %d beside stalled readers; at most %d MiB resident before, %d MiB after", alone, beside, before>>20, after>>20)
		if beside < alone/4 {
			t.Errorf("%d statements beside readers that stall, %d alone: others suffer", beside, alone)
		}
		if bound := before + slack; after > bound {
			t.Errorf("at most %d MiB resident, want %d MiB: results of %d MiB are kept", after>>20, bound>>20, rows)
		}
	})
}

// resultQuery asks for rows of a MiB each, by MariaDB's sequence engine.
func resultQuery(rows int) string {
	return fmt.Sprintf("SELECT REPEAT(CHAR(65 + seq %% 26), 1048576) FROM seq_1_to_%d", rows)
}

// resultHash is the hash of the rows that resultQuery asks for.
func resultHash(rows int) string {
	h := md5.New()
	for n := range rows {
		h.Write([]byte(strings.Repeat(string(rune('A'+(n+1)%26)), 1<<20)))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// readSlowly asks for rows of a MiB, takes the first, says so, and takes the others when it may resume. It returns the
// hash of them all.
func readSlowly(t *testing.T, addr string, rows int, stalled func(), resume <-chan struct{}) (sum string, err error) {
	defer stalled()
	db := openDB(t, addr, "mysql")
	defer db.Close()
	result, err := db.Query(resultQuery(rows))
	if err != nil {
		return "", err
	}
	defer result.Close()
	h := md5.New()
	for result.Next() {
		var row sql.RawBytes
		if err := result.Scan(&row); err != nil {
			return "", err
		}
		h.Write(row)
		stalled()
		<-resume
	}
	return hex.EncodeToString(h.Sum(nil)), result.Err()
}
