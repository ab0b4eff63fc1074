package wire

import (
	"fmt"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// Commands: the first byte of a client's packet in the command phase.
const (
	ComSleep            = mysql.COM_SLEEP
	ComQuit             = mysql.COM_QUIT
	ComInitDB           = mysql.COM_INIT_DB
	ComQuery            = mysql.COM_QUERY
	ComFieldList        = mysql.COM_FIELD_LIST
	ComShutdown         = mysql.COM_SHUTDOWN
	ComStatistics       = mysql.COM_STATISTICS
	ComProcessInfo      = mysql.COM_PROCESS_INFO
	ComProcessKill      = mysql.COM_PROCESS_KILL
	ComDebug            = mysql.COM_DEBUG
	ComPing             = mysql.COM_PING
	ComChangeUser       = mysql.COM_CHANGE_USER
	ComBinlogDump       = mysql.COM_BINLOG_DUMP
	ComRegisterSlave    = mysql.COM_REGISTER_SLAVE
	ComStmtPrepare      = mysql.COM_STMT_PREPARE
	ComStmtExecute      = mysql.COM_STMT_EXECUTE
	ComStmtSendLongData = mysql.COM_STMT_SEND_LONG_DATA
	ComStmtClose        = mysql.COM_STMT_CLOSE
	ComStmtReset        = mysql.COM_STMT_RESET
	ComSetOption        = mysql.COM_SET_OPTION
	ComStmtFetch        = mysql.COM_STMT_FETCH
	ComBinlogDumpGTID   = mysql.COM_BINLOG_DUMP_GTID
	ComResetConnection  = mysql.COM_RESET_CONNECTION
	ComClone            = mysql.COM_CLONE
	ComGroupReplication = mysql.COM_SUBSCRIBE_GROUP_REPLICATION_STREAM

	ComStmtBulkExecute byte = 0xFA // MariaDB
)

var commandNames = map[byte]string{
	ComSleep: "COM_SLEEP", ComQuit: "COM_QUIT", ComInitDB: "COM_INIT_DB", ComQuery: "COM_QUERY",
	ComFieldList: "COM_FIELD_LIST", mysql.COM_CREATE_DB: "COM_CREATE_DB", mysql.COM_DROP_DB: "COM_DROP_DB",
	mysql.COM_REFRESH: "COM_REFRESH", ComShutdown: "COM_SHUTDOWN", ComStatistics: "COM_STATISTICS",
	ComProcessInfo: "COM_PROCESS_INFO", mysql.COM_CONNECT: "COM_CONNECT", ComProcessKill: "COM_PROCESS_KILL",
	ComDebug: "COM_DEBUG", ComPing: "COM_PING", mysql.COM_TIME: "COM_TIME",
	mysql.COM_DELAYED_INSERT: "COM_DELAYED_INSERT", ComChangeUser: "COM_CHANGE_USER",
	ComBinlogDump: "COM_BINLOG_DUMP", mysql.COM_TABLE_DUMP: "COM_TABLE_DUMP", mysql.COM_CONNECT_OUT: "COM_CONNECT_OUT",
	ComRegisterSlave: "COM_REGISTER_SLAVE", ComStmtPrepare: "COM_STMT_PREPARE", ComStmtExecute: "COM_STMT_EXECUTE",
	ComStmtSendLongData: "COM_STMT_SEND_LONG_DATA", ComStmtClose: "COM_STMT_CLOSE", ComStmtReset: "COM_STMT_RESET",
	ComSetOption: "COM_SET_OPTION", ComStmtFetch: "COM_STMT_FETCH", mysql.COM_DAEMON: "COM_DAEMON",
	ComBinlogDumpGTID: "COM_BINLOG_DUMP_GTID", ComResetConnection: "COM_RESET_CONNECTION", ComClone: "COM_CLONE",
	ComGroupReplication: "COM_SUBSCRIBE_GROUP_REPLICATION_STREAM", ComStmtBulkExecute: "COM_STMT_BULK_EXECUTE",
}

// CommandName is the protocol manual's name, or the number in hexadecimal where the manual has none.
func CommandName(command byte) string {
	if name, ok := commandNames[command]; ok {
		return name
	}
	return fmt.Sprintf("COM_0x%02X", command)
}

// RunsSQL reports whether the command runs SQL, which is what is counted as a statement.
func RunsSQL(command byte) bool {
	return command == ComQuery || command == ComStmtExecute || command == ComStmtBulkExecute
}

// HasReply reports whether the server answers the command at all.
func HasReply(command byte) bool {
	return command != ComQuit && command != ComStmtClose && command != ComStmtSendLongData
}

// LeavesProtocol reports whether the command turns the connection into a stream that is not made of commands and
// replies; nothing can be followed after it.
func LeavesProtocol(command byte) bool {
	switch command {
	case ComBinlogDump, ComBinlogDumpGTID, ComClone, ComGroupReplication, mysql.COM_TABLE_DUMP:
		return true
	}
	return command >= 0xA1 && command <= 0xA3 // OceanBase's prepare-execute and piece transfer
}
