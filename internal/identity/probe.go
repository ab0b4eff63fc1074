package identity

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// Probe asks a server of MySQL's or MariaDB's kind who it is. It reads and writes nothing. What the server refuses to
// tell, for want of a privilege or because it does not know the question, stays empty; an error means that the server
// could not be asked at all.
func Probe(ctx context.Context, db *sql.DB) (Server, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return Server{}, fmt.Errorf("ask the server who it is: %w", err)
	}
	defer conn.Close()
	variables := make(map[string]string)
	err = each(ctx, conn, "SHOW GLOBAL VARIABLES", func(row []sql.RawBytes) {
		if len(row) >= 2 {
			variables[strings.ToLower(string(row[0]))] = string(row[1])
		}
	})
	if err := unlessRefused(err); err != nil {
		return Server{}, err
	}
	s := fromVariables(variables)
	return s, s.probeBinlog(ctx, conn)
}

func fromVariables(v map[string]string) Server {
	return Server{
		Version:  v["version"],
		Comment:  v["version_comment"],
		ServerID: v["server_id"],
		UUID:     cmp.Or(v["server_uuid"], v["server_uid"]),
		Hostname: v["hostname"],
		Port:     v["port"],
		Datadir:  v["datadir"],
		Socket:   v["socket"],
		GTID:     strings.ReplaceAll(cmp.Or(v["gtid_executed"], v["gtid_current_pos"], v["gtid_binlog_pos"]), "\n", ""),
	}
}

// probeBinlog asks in the words of MySQL from 8.2 on, then in those that everything else knows.
func (s *Server) probeBinlog(ctx context.Context, conn *sql.Conn) error {
	for _, query := range []string{"SHOW BINARY LOG STATUS", "SHOW MASTER STATUS"} {
		err := each(ctx, conn, query, func(row []sql.RawBytes) {
			if len(row) < 2 {
				return
			}
			s.BinlogFile = string(row[0])
			s.BinlogPos, _ = strconv.ParseUint(string(row[1]), 10, 64)
		})
		if err == nil {
			return nil
		}
		if err := unlessRefused(err); err != nil {
			return err
		}
	}
	return nil
}

// each calls f for every row of a query's result.
func each(ctx context.Context, conn *sql.Conn, query string, f func(row []sql.RawBytes)) error {
	rows, err := conn.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	row := make([]sql.RawBytes, len(columns))
	into := make([]any, len(columns))
	for i := range row {
		into[i] = &row[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		f(row)
	}
	return rows.Err()
}

// unlessRefused drops an error that is the server's answer to one question.
func unlessRefused(err error) error {
	var refused *mysql.MySQLError
	if err == nil || errors.As(err, &refused) {
		return nil
	}
	return fmt.Errorf("ask the server who it is: %w", err)
}
