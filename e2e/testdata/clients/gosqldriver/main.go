// Gosqldriver is the smoke script of go-sql-driver: statements with arguments are prepared on the server, unless the
// driver is told to put the arguments in.
package main

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/go-sql-driver/mysql"
)

func main() {
	log.SetFlags(0)
	for _, interpolate := range []bool{false, true} {
		if err := smoke(interpolate); err != nil {
			log.Fatal(err)
		}
	}
}

func smoke(interpolate bool) error {
	config := mysql.NewConfig()
	config.Net, config.Addr = "tcp", net.JoinHostPort(os.Getenv("SMOKE_HOST"), os.Getenv("SMOKE_PORT"))
	config.User, config.Passwd = os.Getenv("SMOKE_USER"), os.Getenv("SMOKE_PASSWORD")
	config.DBName = os.Getenv("SMOKE_SCHEMA")
	config.MultiStatements, config.ParseTime, config.InterpolateParams = true, true, interpolate
	if os.Getenv("SMOKE_COMPRESS") != "" {
		if err := config.Apply(mysql.EnableCompression(true)); err != nil {
			return err
		}
	}
	if file := os.Getenv("SMOKE_CA"); file != "" {
		pem, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		config.TLS = &tls.Config{RootCAs: x509.NewCertPool(), ServerName: os.Getenv("SMOKE_HOST")}
		config.TLS.RootCAs.AppendCertsFromPEM(pem)
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return err
	}
	pool := sql.OpenDB(connector)
	defer pool.Close()
	db, err := pool.Conn(context.Background())
	if err != nil {
		return err
	}
	defer db.Close()
	s := script{db: db, round: map[bool]int{false: 1, true: 2}[interpolate]}
	s.statements()
	s.transactions()
	s.failures()
	s.several()
	if !interpolate {
		s.blob()
	}
	return errors.Join(s.err, db.PingContext(context.Background()))
}

// A script keeps the first error that it did not ask for.
type script struct {
	db    *sql.Conn
	round int
	err   error
}

func (s *script) keep(err error) { s.err = errors.Join(s.err, err) }

func (s *script) exec(query string, args ...any) {
	result, err := s.db.ExecContext(context.Background(), query, args...)
	if err != nil {
		s.keep(fmt.Errorf("%s: %w", query, err))
		return
	}
	affected, _ := result.RowsAffected()
	id, _ := result.LastInsertId()
	fmt.Println(query, affected, id)
}

func (s *script) query(query string, args ...any) {
	rows, err := s.db.QueryContext(context.Background(), query, args...)
	if err != nil {
		s.keep(fmt.Errorf("%s: %w", query, err))
		return
	}
	defer rows.Close()
	for more := true; more; more = rows.NextResultSet() {
		columns, _ := rows.Columns()
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		for rows.Next() {
			s.keep(rows.Scan(into...))
			fmt.Printf("%v %s\n", columns, values)
		}
	}
	s.keep(rows.Err())
}

func (s *script) statements() {
	born := time.Date(1815, 12, 10, 0, 0, 0, 0, time.UTC)
	s.exec("INSERT INTO people (name, born, score) VALUES ('plain', '1912-06-23', 1.5) ON DUPLICATE KEY UPDATE score = 2")
	s.exec("INSERT INTO people (name, born, score) VALUES (?, ?, ?)", fmt.Sprint("Ada ", s.round), born, 1.5)
	s.exec("INSERT INTO people (name, born, score) VALUES (?, ?, ?)", fmt.Sprint("Zoë ", s.round), nil, nil)
	s.query("SELECT * FROM people ORDER BY id")
	statement, err := s.db.PrepareContext(context.Background(), "SELECT name FROM people WHERE id = ? AND ? IS NOT NULL")
	s.keep(err)
	defer statement.Close()
	for _, given := range []any{1, "text", []byte("bytes"), 1.5, true, born, nil} {
		var name string
		err := statement.QueryRow(1, given).Scan(&name)
		fmt.Println(given, name, err)
	}
}

func (s *script) transactions() {
	for _, commit := range []bool{false, true} {
		tx, err := s.db.BeginTx(context.Background(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
		s.keep(err)
		_, err = tx.Exec("UPDATE people SET score = score + ? WHERE id = ?", 1, 1)
		s.keep(err)
		if commit {
			s.keep(tx.Commit())
		} else {
			s.keep(tx.Rollback())
		}
	}
	s.query("SELECT name, score FROM people WHERE id = 1")
}

func (s *script) blob() {
	size, err := strconv.Atoi(os.Getenv("SMOKE_BLOB"))
	s.keep(err)
	data := make([]byte, size<<20)
	for i := range data {
		data[i] = byte(i)
	}
	s.exec("INSERT INTO blobs VALUES (?, ?)", 1, data)
	var back []byte
	s.keep(s.db.QueryRowContext(context.Background(), "SELECT data FROM blobs WHERE id = ?", 1).Scan(&back))
	fmt.Printf("%x\n", sha256.Sum256(back))
}

func (s *script) failures() {
	for _, wrong := range []string{"SELECT * FROM missing", "INSERT INTO people (name) VALUES ('plain')", "SELECT 1; SELECT nonsense"} {
		_, err := s.db.ExecContext(context.Background(), wrong)
		fmt.Println(wrong, err)
	}
	_, err := s.db.PrepareContext(context.Background(), "SELECT FROM WHERE ?")
	fmt.Println(err)
}

func (s *script) several() {
	s.query("SELECT 1; SELECT 2, 'two'; SELECT 3 FROM people WHERE FALSE")
	s.exec("UPDATE people SET score = 3 WHERE id = 1; UPDATE people SET score = 4 WHERE id > 1")
	s.query("CALL two_results(?)", 5)
}
