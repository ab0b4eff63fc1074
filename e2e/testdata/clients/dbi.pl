# The smoke script of Perl's DBI; the driver is its argument: mysql or MariaDB. Both stand on MariaDB's C library and
# prepare on the server when told to.
use strict;
use warnings;
use DBI;
use Digest::SHA qw(sha256_hex);

my $driver = shift;
my $prefix = lc $driver;
my $dsn = "DBI:$driver:database=$ENV{SMOKE_SCHEMA};host=$ENV{SMOKE_HOST};port=$ENV{SMOKE_PORT};"
	. "${prefix}_multi_statements=1;${prefix}_server_prepare=0;${prefix}_compression=" . ($ENV{SMOKE_COMPRESS} ? 1 : 0);
if ($ENV{SMOKE_CA}) {
	$dsn .= ";${prefix}_ssl=1;${prefix}_ssl_ca_file=$ENV{SMOKE_CA}";
	$dsn .= $driver eq 'mysql' ? ';mysql_ssl_optional=1' : ';mariadb_ssl_verify_server_cert=1'; # it cannot insist
}
my $db = DBI->connect($dsn, $ENV{SMOKE_USER}, $ENV{SMOKE_PASSWORD}, { RaiseError => 1, PrintError => 0 });

sub show {
	my $statement = shift;
	print join(', ', map { defined $_ ? $_ : 'NULL' } @$_), "\n" for @{ $statement->fetchall_arrayref };
}

sub query {
	my ($sql, $prepared, @values) = @_;
	my $statement = $db->prepare($sql, { "${prefix}_server_prepare" => $prepared });
	print "$sql: ", $statement->execute(@values), "\n";
	show($statement) if $statement->{NUM_OF_FIELDS};
	return $statement;
}

sub attempt {
	my ($sql, $prepared) = @_;
	eval { query($sql, $prepared) };
	print "$sql: ", $db->err, ' ', $db->state, ' ', $db->errstr, "\n" if $@;
}

for my $prepared (0, 1) {
	query("INSERT INTO people (name, born, score) VALUES (?, ?, ?)", $prepared, "Ada $prepared", '1815-12-10', 1.5);
	my $insert = $db->prepare('INSERT INTO people (name, score) VALUES (?, ?)', { "${prefix}_server_prepare" => $prepared });
	$insert->execute(@$_) for [ "Grace $prepared", 2.5 ], [ "Nobody $prepared", undef ], [ "Alan $prepared", -0.25 ];
	query('SELECT * FROM people WHERE id > ? ORDER BY id', $prepared, 1);
	$db->begin_work;
	query('DELETE FROM people WHERE name LIKE ?', $prepared, "%$prepared");
	$db->rollback;
	$db->begin_work;
	query('UPDATE people SET score = score + ?', $prepared, 1);
	$db->commit;
	attempt('SELECT * FROM missing', $prepared);
	attempt("INSERT INTO people (name) VALUES ('Ada 0')", $prepared);
}

my $data = join('', map { chr } 0 .. 255) x (4096 * $ENV{SMOKE_BLOB});
my $blob = $db->prepare('INSERT INTO blobs VALUES (1, ?)', { "${prefix}_server_prepare" => 1 });
$blob->bind_param(1, $data, DBI::SQL_BLOB);
$blob->execute;
$db->{LongReadLen} = 32 << 20;
my ($back) = $db->selectrow_array('SELECT data FROM blobs WHERE id = 1');
print sha256_hex($back), "\n";

my $several = $db->prepare("SELECT 1; UPDATE people SET score = 3 WHERE id = 1; SELECT 2, 'two'");
$several->execute;
do {
	$several->{NUM_OF_FIELDS} ? show($several) : print $several->rows, "\n";
} while ($several->more_results);
my $call = $db->prepare('CALL two_results(5)');
$call->execute;
do {
	show($call) if $call->{NUM_OF_FIELDS};
} while ($call->more_results);
print $db->ping, "\n";
$db->disconnect;
