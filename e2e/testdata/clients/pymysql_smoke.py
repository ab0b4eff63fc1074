# The smoke script of PyMySQL, which knows text statements only.
import hashlib
import os

import pymysql
from pymysql.constants import CLIENT
from pymysql.cursors import SSCursor

db = pymysql.connect(
    host=os.environ["SMOKE_HOST"], port=int(os.environ["SMOKE_PORT"]), user=os.environ["SMOKE_USER"],
    password=os.environ["SMOKE_PASSWORD"], database=os.environ["SMOKE_SCHEMA"], charset="utf8mb4",
    ssl={"ca": os.environ["SMOKE_CA"]} if "SMOKE_CA" in os.environ else None,
    client_flag=CLIENT.MULTI_STATEMENTS)
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
cursor.execute("INSERT INTO blobs VALUES (1, _binary %s)", (data,))
cursor.execute("SELECT data FROM blobs WHERE id = 1")
print(hashlib.sha256(cursor.fetchone()[0]).hexdigest())

for wrong in ("SELECT * FROM missing", "INSERT INTO people (name) VALUES ('a')", "", "SELECT 1; SELECT nonsense; SELECT 2"):
    try:
        cursor.execute(wrong)
        while cursor.nextset():
            pass
    except pymysql.MySQLError as error:
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
print(sum(row[0] for row in stream))
stream.close()
db.select_db(os.environ["SMOKE_SCHEMA"])
db.ping()
db.close()
