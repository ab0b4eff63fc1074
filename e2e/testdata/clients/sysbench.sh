# Runs sysbench.lua and leaves out what sysbench measured.
set -eu
sysbench --mysql-host="$SMOKE_HOST" --mysql-port="$SMOKE_PORT" --mysql-user="$SMOKE_USER" \
	--mysql-password="$SMOKE_PASSWORD" --mysql-db="$SMOKE_SCHEMA" --mysql-ignore-errors=1062 ${SMOKE_COMPRESS:+--mysql-compression=on} --events=1 --time=0 \
	"$(dirname "$0")/sysbench.lua" run 2>&1 | sed '/^SQL statistics/,$d'
