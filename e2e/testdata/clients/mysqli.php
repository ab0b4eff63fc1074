<?php
// The smoke script of PHP's mysqli on mysqlnd: prepared statements that leave the types out when executed again,
// cursors, long data.
mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
$db = mysqli_init();
if (getenv('SMOKE_CA')) {
    $db->ssl_set(null, null, getenv('SMOKE_CA'), null, null);
}
$db->real_connect(getenv('SMOKE_HOST'), getenv('SMOKE_USER'), getenv('SMOKE_PASSWORD'), getenv('SMOKE_SCHEMA'),
    (int)getenv('SMOKE_PORT'), null, (getenv('SMOKE_COMPRESS') ? MYSQLI_CLIENT_COMPRESS : 0) | (getenv('SMOKE_CA') ? MYSQLI_CLIENT_SSL : 0));
$db->set_charset('utf8mb4');

function show(mysqli_result $result): void {
    echo json_encode($result->fetch_all(), JSON_UNESCAPED_UNICODE), "\n";
}
function attempt(string $what, callable $f): void {
    try {
        $f();
    } catch (mysqli_sql_exception $e) {
        echo $what, ': ', $e->getCode(), ' ', $e->getSqlState(), ' ', $e->getMessage(), "\n";
    }
}

$db->query("INSERT INTO people (name, born, score) VALUES ('Ada', '1815-12-10', 1.5)");
echo $db->insert_id, ' ', $db->affected_rows, "\n";
show($db->query('SELECT * FROM people'));

$insert = $db->prepare('INSERT INTO people (name, born, score) VALUES (?, ?, ?)');
$insert->bind_param('ssd', $name, $born, $score);
foreach ([['Grace', '1906-12-09', 2.5], ['Zoë', null, null], ['Alan', '1912-06-23', -0.25]] as [$name, $born, $score]) {
    $insert->execute();
    echo $insert->insert_id, "\n";
}
attempt('duplicate', fn() => $insert->execute());
$insert->close();

$select = $db->prepare('SELECT id, name, born, score, ? AS given FROM people WHERE id >= ? ORDER BY id');
$given = 7;
$from = 2;
$select->bind_param('ii', $given, $from);
$select->execute();
show($select->get_result());
$from = 4;
$select->execute();
show($select->get_result());
$select->reset();
$select->close();

$db->begin_transaction();
$db->query("DELETE FROM people WHERE name = 'Ada'");
$db->rollback();
$db->autocommit(false);
$db->query("UPDATE people SET score = 9 WHERE name = 'Ada'");
$db->commit();
$db->autocommit(true);
show($db->query("SELECT name, score FROM people WHERE score = 9"));

$data = str_repeat(implode(array_map('chr', range(0, 255))), 4096 * (int)getenv('SMOKE_BLOB'));
$blob = $db->prepare('INSERT INTO blobs VALUES (?, ?)');
$null = null;
$id = 1;
$blob->bind_param('ib', $id, $null);
foreach (str_split($data, 8 << 20) as $part) {
    $blob->send_long_data(1, $part);
}
$blob->execute();
$blob->close();
echo hash('sha256', $db->query('SELECT data FROM blobs WHERE id = 1')->fetch_row()[0]), "\n";

attempt('missing', fn() => $db->query('SELECT * FROM missing'));
attempt('unpreparable', fn() => $db->prepare('SELECT FROM WHERE'));

$db->multi_query("SELECT 1; UPDATE people SET score = 3 WHERE id = 1; SELECT 2, 'two'");
do {
    $result = $db->store_result();
    $result ? show($result) : print($db->affected_rows . "\n");
} while ($db->more_results() && $db->next_result());
attempt('in the middle', function () use ($db) {
    $db->multi_query('SELECT 1; SELECT nonsense; SELECT 2');
    do {
        show($db->store_result());
    } while ($db->next_result());
});
$db->multi_query('CALL two_results(5)');
do {
    if ($result = $db->store_result()) {
        show($result);
    }
} while ($db->next_result());

// Two cursors over a thousand rows, fetched in turns, with another statement in between.
$cursors = [];
foreach ([1, 2] as $n) {
    $cursor = $db->prepare("SELECT seq, seq * $n FROM seq_1_to_1000 WHERE seq > ?");
    $cursor->attr_set(MYSQLI_STMT_ATTR_CURSOR_TYPE, MYSQLI_CURSOR_TYPE_READ_ONLY);
    $cursor->attr_set(MYSQLI_STMT_ATTR_PREFETCH_ROWS, 1);
    $above = 985;
    $cursor->bind_param('i', $above);
    $cursor->execute();
    $cursors[] = $cursor;
}
foreach ($cursors as $i => $cursor) {
    $cursor->bind_result($seq[$i], $product[$i]);
}
for ($row = 0; $row < 5; $row++) {
    foreach ($cursors as $i => $cursor) {
        $cursor->fetch();
        echo $seq[$i], ' ', $product[$i], "\n";
    }
}
show($db->query('SELECT COUNT(*) FROM people'));
while ($cursors[0]->fetch()) {
    echo $product[0], "\n";
}
$cursors[0]->close();
$cursors[1]->close();
$db->change_user(getenv('SMOKE_USER'), getenv('SMOKE_PASSWORD'), getenv('SMOKE_SCHEMA'));
show($db->query('SELECT @@autocommit'));
$db->close();
