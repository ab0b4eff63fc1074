# The smoke script of the mariadb command line client: everything is text, what is prepared too; it sends a file.
set -eu
export MYSQL_PWD="$SMOKE_PASSWORD"
tls=--skip-ssl
if [ -n "${SMOKE_CA-}" ]; then
	tls="--ssl-ca=$SMOKE_CA --ssl-verify-server-cert"
fi
client() {
	mariadb --no-defaults --host="$SMOKE_HOST" --port="$SMOKE_PORT" --user="$SMOKE_USER" \
		--max-allowed-packet=64M --local-infile=1 ${SMOKE_COMPRESS:+--compress} \
		$tls "$@" "$SMOKE_SCHEMA"
}

printf '10\tTen\t1910-01-01\t10.5\n11\tEleven\t\\N\t11.5\n' >people.tsv
: >empty.tsv
client --table --force --comments 2>&1 <<SQL
INSERT INTO people (name, born, score) VALUES ('Ada', '1815-12-10', 1.5), ('Grace', NULL, NULL), ('Zoë', '1912-06-23', -0.25);
SELECT /* a comment */ * FROM people ORDER BY id;
SELECT '' AS empty, NULL AS nothing, REPEAT('x', 300) AS long_one;
PREPARE s FROM 'SELECT name FROM people WHERE id = ?';
SET @id = 2;
EXECUTE s USING @id;
DEALLOCATE PREPARE s;
BEGIN;
INSERT INTO people (name) VALUES ('nobody');
ROLLBACK;
START TRANSACTION;
UPDATE people SET score = 2 WHERE name = 'Grace';
COMMIT;
SELECT COUNT(*) FROM people;
SELECT * FROM missing;
INSERT INTO people (name) VALUES ('Ada');
delimiter //
SELECT 1; UPDATE people SET score = 3 WHERE id = 1; SELECT 2; SELECT nonsense; SELECT 3//
delimiter ;
CALL two_results(5);
LOAD DATA LOCAL INFILE 'people.tsv' INTO TABLE people;
LOAD DATA LOCAL INFILE 'empty.tsv' INTO TABLE people;
LOAD DATA LOCAL INFILE 'people.tsv' INTO TABLE missing;
SELECT * FROM people ORDER BY id;
use $SMOKE_SCHEMA
SELECT DATABASE() = '$SMOKE_SCHEMA';
SQL

# A blob in one literal, and back.
{
	printf "INSERT INTO blobs VALUES (1, '"
	head -c $((SMOKE_BLOB << 20)) /dev/zero | tr '\0' 'b'
	printf "');\n"
} | client
client --batch --raw --skip-column-names --quick --execute='SELECT data FROM blobs WHERE id = 1' | sha256sum
