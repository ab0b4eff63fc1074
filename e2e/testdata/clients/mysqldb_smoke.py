# The smoke script of mysqlclient (MySQLdb), which is MariaDB's C library with text statements only.
import hashlib
import os

import MySQLdb
from MySQLdb.cursors import SSCursor

db = MySQLdb.connect(
    host=os.environ["SMOKE_HOST"], port=int(os.environ["SMOKE_PORT"]), user=os.environ["SMOKE_USER"],
    password=os.environ["SMOKE_PASSWORD"], database=os.environ["SMOKE_SCHEMA"], charset="utf8mb4",
    **({"ssl": {"ca": os.environ["SMOKE_CA"]}} if "SMOKE_CA" in os.environ else {}),
    **({"compress": 1} if "SMOKE_COMPRESS" in os.environ else {}))
cursor = db.cursor()


def show(sql, *args):
    count = cursor.execute(sql, args or None)
    print(sql, count, cursor.lastrowid, cursor.fetchall())


show("INSERT INTO people (name, born, score) VALUES (%s, %s, %s)", "Ada", "1815-12-10", 1.5)
show("INSERT INTO people (name, born, score) VALUES (%s, %s, %s)", "Zoë", None, None)
show("SELECT * FROM people ORDER BY id")
db.rollback()
show("SELECT * FROM people")
db.begin()
cursor.executemany("INSERT INTO people (name, score) VALUES (%s, %s)", [("a", 1), ("b", 2), ("c", 3)])
db.commit()
show("SELECT id, name, score FROM people ORDER BY id")
db.autocommit(True)

data = bytes(range(256)) * 4096 * int(os.environ["SMOKE_BLOB"])
cursor.execute("INSERT INTO blobs VALUES (1, %s)", (data,))
cursor.execute("SELECT data FROM blobs WHERE id = 1")
print(hashlib.sha256(cursor.fetchone()[0]).hexdigest())

db.set_server_option(0)  # several statements in one, from now on
for wrong in ("SELECT * FROM missing", "INSERT INTO people (name) VALUES ('a')", "", "SELECT 1; SELECT nonsense; SELECT 2"):
    try:
        cursor.execute(wrong)
        while cursor.nextset() is not None:
            pass
    except MySQLdb.Error as error:
        print(wrong, error)

cursor = db.cursor()
cursor.execute("SELECT 1; UPDATE people SET score = score + 1; SELECT 2, 'two'; DO 1")
while True:
    print(cursor.rowcount, cursor.fetchall())
    if not cursor.nextset():
        break
cursor.callproc("two_results", (5,))
print(cursor.fetchall(), cursor.nextset(), cursor.fetchall())
cursor.close()

stream = db.cursor(SSCursor)
stream.execute("SELECT seq FROM seq_1_to_1000")
print(sum(row[0] for row in stream.fetchall()))
stream.close()
db.select_db(os.environ["SMOKE_SCHEMA"])
db.ping()
db.close()
