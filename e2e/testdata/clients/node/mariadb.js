// The smoke script of MariaDB's node connector, which sends commands without waiting for replies, an EXECUTE behind
// its PREPARE included, and batches as bulk executes.
const crypto = require('crypto')
const fs = require('fs')
const mariadb = require('mariadb')

async function main() {
	const env = process.env
	const db = await mariadb.createConnection({
		host: env.SMOKE_HOST, port: Number(env.SMOKE_PORT), user: env.SMOKE_USER, password: env.SMOKE_PASSWORD,
		database: env.SMOKE_SCHEMA, multipleStatements: true, dateStrings: true, pipelining: true,
		compress: Boolean(env.SMOKE_COMPRESS),
		ssl: env.SMOKE_CA && { ca: fs.readFileSync(env.SMOKE_CA) },
		bigIntAsNumber: true, insertIdAsNumber: true,
	})
	const show = async (answer) => console.log(JSON.stringify(await answer))
	const attempt = (what, answer) => answer.then(
		() => console.log(what, 'succeeded'), (e) => console.log(what, e.errno, e.sqlState, e.sqlMessage))

	const insert = 'INSERT INTO people (name, born, score) VALUES (?, ?, ?)'
	await show(db.query(insert, ['Ada', '1815-12-10', 1.5]))
	await show(db.execute(insert, ['Grace', null, null]))
	await show(db.execute(insert, ['Zoë', '1912-06-23', -0.25]))
	await attempt('duplicate', db.execute(insert, ['Zoë', null, 1]))
	await show(db.query('SELECT * FROM people ORDER BY id'))
	await show(db.execute('SELECT *, ? AS given FROM people WHERE id > ? ORDER BY id', ['text', 1]))

	const prepared = await db.prepare('SELECT name, ? AS given FROM people WHERE id = ?')
	await show(prepared.execute([1, 1]))
	await show(prepared.execute(['two', 2]))
	prepared.close()

	await show(db.batch(insert, [['a', null, 1], ['b', '2001-02-03', null], ['c', null, 3.5]]))
	await attempt('duplicate in a batch', db.batch(insert, [['d', null, 1], ['a', null, 2]]))

	await db.beginTransaction()
	await db.query("DELETE FROM people WHERE name = 'Ada'")
	await db.rollback()
	await db.beginTransaction()
	await db.execute('UPDATE people SET score = ? WHERE name = ?', [9, 'Ada'])
	await db.commit()
	await show(db.query('SELECT COUNT(*), SUM(score) FROM people'))

	const data = Buffer.alloc(env.SMOKE_BLOB << 20, Buffer.from(Array.from({ length: 256 }, (_, i) => i)))
	await show(db.execute('INSERT INTO blobs VALUES (?, ?)', [1, data]))
	const rows = await db.query('SELECT data FROM blobs WHERE id = ?', [1])
	console.log(crypto.createHash('sha256').update(rows[0].data).digest('hex'))

	// All of these are on their way before the first reply; some fail, one of them while it is being prepared.
	await Promise.all([
		show(db.query('SELECT 1 AS one')),
		show(db.execute('SELECT ? + 1 AS two', [1])),
		attempt('missing', db.query('SELECT * FROM missing')),
		attempt('unpreparable', db.execute('SELECT FROM WHERE ?', [1])),
		show(db.execute('SELECT ? + 3 AS four', [1])),
		show(db.query('INSERT INTO people (name) VALUES (?)', ['pipelined'])),
		show(db.execute('SELECT ? + 1 AS two', [2])),
		show(db.query("SELECT 'last' AS word")),
	])

	await show(db.query("SELECT 1; UPDATE people SET score = 3 WHERE id = 1; SELECT 2, 'two'"))
	await attempt('in the middle', db.query('SELECT 1; SELECT nonsense; SELECT 2'))
	await show(db.query('CALL two_results(5)'))
	await show(db.execute('CALL two_results(?)', [5]))
	let sum = 0
	for await (const row of db.queryStream('SELECT seq FROM seq_1_to_1000')) sum += row.seq
	console.log(sum)
	await db.ping()
	await db.reset()
	await db.changeUser({ user: env.SMOKE_USER, password: env.SMOKE_PASSWORD, database: env.SMOKE_SCHEMA })
	await show(db.query('SELECT @@autocommit AS autocommit'))
	await db.end()
}

main().catch((e) => { console.error(e); process.exit(1) })
