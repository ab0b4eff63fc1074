// The smoke script of MariaDB Connector/J; its argument says where statements are prepared: client or server.
import java.security.MessageDigest;
import java.sql.*;
import java.util.HexFormat;

public class Smoke {
	static Connection db;

	public static void main(String[] args) throws Exception {
		String url = String.format("jdbc:mariadb://%s:%s/%s?user=%s&password=%s&allowMultiQueries=true&useServerPrepStmts=%b&useCompression=%b",
			env("HOST"), env("PORT"), env("SCHEMA"), env("USER"), env("PASSWORD"), args[0].equals("server"),
			System.getenv("SMOKE_COMPRESS") != null);
		if (System.getenv("SMOKE_CA") != null) url += "&useSsl=true&serverSslCert=" + System.getenv("SMOKE_CA");
		try (Connection connection = DriverManager.getConnection(url)) {
			db = connection;
			prepared();
			batches();
			transactions();
			blob();
			failures();
			several();
			streamed();
			System.out.println(db.isValid(10));
		}
	}

	static String env(String name) {
		return System.getenv("SMOKE_" + name);
	}

	static void show(ResultSet rows) throws SQLException {
		int columns = rows.getMetaData().getColumnCount();
		while (rows.next()) {
			StringBuilder line = new StringBuilder();
			for (int i = 1; i <= columns; i++) line.append(rows.getString(i)).append('|');
			System.out.println(line);
		}
	}

	static void query(String sql, Object... values) throws SQLException {
		try (PreparedStatement s = db.prepareStatement(sql)) {
			for (int i = 0; i < values.length; i++) s.setObject(i + 1, values[i]);
			if (s.execute()) show(s.getResultSet());
			else System.out.println(s.getUpdateCount());
		}
	}

	static void prepared() throws SQLException {
		try (Statement s = db.createStatement()) {
			s.executeUpdate("INSERT INTO people (name, born, score) VALUES ('Ada', '1815-12-10', 1.5)", Statement.RETURN_GENERATED_KEYS);
			show(s.getGeneratedKeys());
			show(s.executeQuery("SELECT * FROM people"));
		}
		try (PreparedStatement s = db.prepareStatement("INSERT INTO people (name, born, score) VALUES (?, ?, ?)")) {
			for (String name : new String[] {"Grace", "Zoë", "Alan"}) {
				s.setString(1, name);
				s.setDate(2, name.equals("Zoë") ? null : Date.valueOf("1912-06-23"));
				s.setDouble(3, name.length());
				System.out.println(s.executeUpdate());
			}
		}
		query("SELECT *, ? AS given FROM people WHERE id > ? ORDER BY id", "text", 1);
		query("SELECT *, ? AS given FROM people WHERE id > ? ORDER BY id", 7L, 2);
	}

	static void batches() throws SQLException {
		try (PreparedStatement s = db.prepareStatement("INSERT INTO people (name, score) VALUES (?, ?)")) {
			for (int i = 0; i < 20; i++) {
				s.setString(1, "batch " + i);
				s.setInt(2, i);
				s.addBatch();
			}
			System.out.println(s.executeBatch().length);
		}
		try (Statement s = db.createStatement()) {
			for (int i = 0; i < 5; i++) s.addBatch("UPDATE people SET score = score + 1 WHERE id = " + i);
			for (int n : s.executeBatch()) System.out.println(n);
		}
	}

	static void transactions() throws SQLException {
		db.setAutoCommit(false);
		query("DELETE FROM people WHERE name = ?", "Ada");
		db.rollback();
		query("UPDATE people SET score = ? WHERE name = ?", 9, "Ada");
		Savepoint savepoint = db.setSavepoint("here");
		query("DELETE FROM people");
		db.rollback(savepoint);
		db.commit();
		db.setAutoCommit(true);
		query("SELECT COUNT(*), SUM(score) FROM people");
	}

	static void blob() throws Exception {
		byte[] data = new byte[Integer.parseInt(env("BLOB")) << 20];
		for (int i = 0; i < data.length; i++) data[i] = (byte) i;
		try (PreparedStatement s = db.prepareStatement("INSERT INTO blobs VALUES (1, ?)")) {
			s.setBytes(1, data);
			s.executeUpdate();
		}
		try (PreparedStatement s = db.prepareStatement("SELECT data FROM blobs WHERE id = ?")) {
			s.setInt(1, 1);
			ResultSet rows = s.executeQuery();
			rows.next();
			System.out.println(HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(rows.getBytes(1))));
		}
	}

	static void failures() {
		for (String wrong : new String[] {"SELECT * FROM missing", "INSERT INTO people (name) VALUES ('Ada')", "SELECT FROM WHERE"}) {
			try {
				query(wrong);
			} catch (SQLException e) { // its message has the connection's id
				System.out.println(wrong + ": " + e.getErrorCode() + " " + e.getSQLState());
			}
		}
	}

	static void several() throws SQLException {
		try (Statement s = db.createStatement()) {
			boolean rows = s.execute("SELECT 1; UPDATE people SET score = 3 WHERE id = 1; SELECT 2, 'two'");
			while (rows || s.getUpdateCount() != -1) {
				if (rows) show(s.getResultSet());
				else System.out.println(s.getUpdateCount());
				rows = s.getMoreResults();
			}
		}
		try (CallableStatement s = db.prepareCall("{call doubled(?, ?)}")) {
			s.setInt(1, 21);
			s.registerOutParameter(2, Types.INTEGER);
			s.execute();
			System.out.println(s.getInt(2));
		}
	}

	static void streamed() throws SQLException {
		try (PreparedStatement s = db.prepareStatement("SELECT seq FROM seq_1_to_1000 WHERE seq > ?")) {
			s.setFetchSize(10);
			s.setInt(1, 10);
			ResultSet rows = s.executeQuery();
			long sum = 0;
			while (rows.next()) sum += rows.getLong(1);
			System.out.println(sum);
		}
	}
}
