package sqltext

import "strings"

// maxWord bounds the words that are looked up: no keyword, function or character set has a longer name.
const maxWord = 32

// lower copies word to buf in lower case and returns that, or nil if the word is too long to be known.
func lower(buf *[maxWord]byte, word []byte) []byte {
	if len(word) > maxWord {
		return nil
	}
	for i, c := range word {
		buf[i] = lowerByte(c)
	}
	return buf[:len(word)]
}

func lowerByte(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c | 0x20
	}
	return c
}

// isCharset reports whether name is a character set, so that _name in front of a literal is an introducer.
func isCharset(name []byte) bool {
	var buf [maxWord]byte
	return charsets[string(lower(&buf, name))]
}

// wordClass is what the normaliser must know of a reserved word.
type wordClass uint8

const (
	reserved wordClass = 1 << iota // as a name it needs backticks
	operand                        // a value follows: a sign behind it is the value's, NULL is a value
	tight                          // ( follows without a blank: functions and types that are reserved
)

// A wordTable finds classes by open addressing. Half the words of a statement are looked up, and a map takes a fifth
// of the time that normalising does.
type wordTable [1024]struct {
	word  string
	class wordClass
}

// slot is where the search for a word begins.
func slot(word string) int {
	n := len(word)
	return (int(word[0])*31 + int(word[n/2])*17 + int(word[n-1])*5 + n*127) % len(wordTable{})
}

// classOf is the class of a word in lower case; 0 for one that is not reserved.
func classOf(word []byte) wordClass {
	if len(word) == 0 {
		return 0
	}
	for i := slot(string(word)); wordClasses[i].word != ""; i = (i + 1) % len(wordClasses) {
		if wordClasses[i].word == string(word) {
			return wordClasses[i].class
		}
	}
	return 0
}

func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

var charsets = set(`armscii8 ascii big5 binary cp1250 cp1251 cp1256 cp1257 cp850 cp852 cp866 cp932 dec8 eucjpms euckr
	gb18030 gb2312 gbk geostd8 greek hebrew hp8 keybcs2 koi8r koi8u latin1 latin2 latin5 latin7 macce macroman sjis swe7
	tis620 ucs2 ujis utf16 utf16le utf32 utf8 utf8mb3 utf8mb4`)

var wordClasses = func() (table wordTable) {
	add := func(class wordClass, words string) {
		for _, w := range strings.Fields(words) {
			i := slot(w)
			for table[i].word != "" && table[i].word != w {
				i = (i + 1) % len(table)
			}
			table[i].word = w
			table[i].class |= class
		}
	}
	add(reserved, reservedWords)
	add(operand, `and between by case distinct div else having in interval like limit mod not offset on or regexp return
		rlike select set then when where xor`)
	add(tight, `bigint binary bit blob char character convert cume_dist current_date current_time current_timestamp
		current_user database dec decimal dense_rank double first_value float if insert int integer lag last_value lead
		left localtime localtimestamp longblob longtext mediumblob mediumint mediumtext mod nth_value ntile numeric
		percent_rank rank real repeat replace right row row_number schema smallint text tinyblob tinyint tinytext truncate
		utc_date utc_time utc_timestamp varbinary varchar`)
	return table
}()

// reservedWords are those of MySQL 8 and MariaDB 10.11 together.
const reservedWords = `accessible add all alter analyze and as asc asensitive before between bigint binary blob both by
	call cascade case change char character check collate column condition constraint continue convert create cross cube
	cume_dist current_date current_role current_time current_timestamp current_user cursor database databases day_hour
	day_microsecond day_minute day_second dec decimal declare default delayed delete dense_rank desc describe
	deterministic distinct distinctrow div double drop dual each else elseif empty enclosed escaped except exists exit
	explain false fetch first_value float float4 float8 for force foreign from fulltext function generated get grant
	group grouping groups having high_priority hour_microsecond hour_minute hour_second if ignore in index infile inner
	inout insensitive insert int int1 int2 int3 int4 int8 integer intersect interval into io_after_gtids io_before_gtids
	is iterate join json_table key keys kill lag last_value lateral lead leading leave left like limit linear lines load
	localtime localtimestamp lock long longblob longtext loop low_priority master_bind master_ssl_verify_server_cert
	match maxvalue mediumblob mediumint mediumtext middleint minute_microsecond minute_second mod modifies natural not
	no_write_to_binlog nth_value ntile null numeric of offset on optimize optimizer_costs option optionally or order out
	outer outfile over partition percent_rank precision primary procedure purge range rank read reads read_write real
	recursive references regexp release rename repeat replace require resignal restrict return returning revoke right
	rlike row rows row_number schema schemas second_microsecond select sensitive separator set show signal smallint
	spatial specific sql sqlexception sqlstate sqlwarning sql_big_result sql_calc_found_rows sql_small_result ssl
	starting stored straight_join system table terminated then tinyblob tinyint tinytext to trailing trigger true undo
	union unique unlock unsigned update usage use using utc_date utc_time utc_timestamp values varbinary varchar
	varcharacter varying virtual when where while window with write xor year_month zerofill`
