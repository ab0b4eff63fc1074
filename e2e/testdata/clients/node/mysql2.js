// The smoke script of mysql2: text by query, prepared statements by execute.
const crypto = require('crypto')
const fs = require('fs')
const mysql = require('mysql2/promise')

async function main() {
	const env = process.env
	const db = await mysql.createConnection({
		host: env.SMOKE_HOST, port: Number(env.SMOKE_PORT), user: env.SMOKE_USER, password: env.SMOKE_PASSWORD,
		database: env.SMOKE_SCHEMA, multipleStatements: true, dateStrings: true,
		compress: Boolean(env.SMOKE_COMPRESS),
		ssl: env.SMOKE_CA && { ca: fs.readFileSync(env.SMOKE_CA) },
	})
	const show = async (answer) => console.log(JSON.stringify((await answer)[0]))
	const attempt = (what, answer) => answer.then(
		() => console.log(what, 'succeeded'), (e) => console.log(what, e.errno, e.sqlState, e.message))

	const insert = 'INSERT INTO people (name, born, score) VALUES (?, ?, ?)'
	await show(db.query(insert, ['Ada', '1815-12-10', 1.5]))
	await show(db.execute(insert, ['Grace', null, null]))
	await show(db.execute(insert, ['Zoë', '1912-06-23', -0.25]))
	await attempt('duplicate', db.execute(insert, ['Zoë', null, 1]))
	await show(db.query('SELECT * FROM people ORDER BY id'))
	await show(db.execute('SELECT *, ? AS given FROM people WHERE id > ? ORDER BY id', ['text', 1]))
	await show(db.execute('SELECT *, ? AS given FROM people WHERE id > ? ORDER BY id', [new Date(86400000), 2]))

	await db.beginTransaction()
	await db.query("DELETE FROM people WHERE name = 'Ada'")
	await db.rollback()
	await db.beginTransaction()
	await db.execute('UPDATE people SET score = ? WHERE name = ?', [9, 'Ada'])
	await db.commit()
	await show(db.query('SELECT COUNT(*), SUM(score) FROM people'))

	const data = Buffer.alloc(env.SMOKE_BLOB << 20, Buffer.from(Array.from({ length: 256 }, (_, i) => i)))
	await show(db.execute('INSERT INTO blobs VALUES (?, ?)', [1, data]))
	const [rows] = await db.execute('SELECT data FROM blobs WHERE id = ?', [1])
	console.log(crypto.createHash('sha256').update(rows[0].data).digest('hex'))

	await attempt('missing', db.query('SELECT * FROM missing'))
	await attempt('unpreparable', db.execute('SELECT FROM WHERE'))
	await show(db.query("SELECT 1; UPDATE people SET score = 3 WHERE id = 1; SELECT 2, 'two'"))
	await attempt('in the middle', db.query('SELECT 1; SELECT nonsense; SELECT 2'))
	await show(db.query('CALL two_results(5)'))
	await show(db.execute('CALL two_results(?)', [5]))

	// Sent without waiting: the library queues them.
	const answers = await Promise.all([1, 2, 3].map((n) => db.execute('SELECT ? + 1', [n])))
	console.log(JSON.stringify(answers.map(([rows]) => rows)))
	db.unprepare(insert)
	await db.ping()
	await db.changeUser({ user: env.SMOKE_USER, password: env.SMOKE_PASSWORD, database: env.SMOKE_SCHEMA })
	await show(db.query('SELECT @@autocommit'))
	await db.end()
}

main().catch((e) => { console.error(e); process.exit(1) })
