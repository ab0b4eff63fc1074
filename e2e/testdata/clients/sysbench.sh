# Runs sysbench.lua and leaves out what sysbench measured.
set -eu
if [ -n "${SMOKE_CA-}" ]; then # files of these names, in the folder it runs in, are what its --mysql-ssl takes
	cp "$SMOKE_CA" cacert.pem
	cp "$(dirname "$SMOKE_CA")/cert.pem" client-cert.pem
	cp "$(dirname "$SMOKE_CA")/key.pem" client-key.pem
fi
sysbench --mysql-host="$SMOKE_HOST" --mysql-port="$SMOKE_PORT" --mysql-user="$SMOKE_USER" \
	--mysql-password="$SMOKE_PASSWORD" --mysql-db="$SMOKE_SCHEMA" --mysql-ignore-errors=1062 ${SMOKE_COMPRESS:+--mysql-compression=on} ${SMOKE_CA:+--mysql-ssl=on} --events=1 --time=0 \
	"$(dirname "$0")/sysbench.lua" run 2>&1 | sed '/^SQL statistics/,$d'
