package sqltext

// lockFunctions take or wait for named locks.
var lockFunctions = set(`get_lock release_lock release_all_locks`)

// spaceless are the built-in functions whose names, without the sql_mode IGNORE_SPACE, mean a stored function when a
// space stands between them and the parenthesis.
var spaceless = set(`adddate bit_and bit_or bit_xor cast count curdate curtime date_add date_sub extract group_concat
	json_arrayagg json_objectagg max mid min now position session_user st_collect std stddev stddev_pop stddev_samp
	subdate substr substring sum sysdate system_user trim var_pop var_samp variance`)

// builtins are the functions of MySQL and MariaDB that change nothing beyond their own session, with the words that are
// not reserved but may stand in front of a parenthesis. Left out on purpose: nextval, setval and whatever starts or
// steers something in the server.
var builtins = set(`
	abs acos add_months adddate addtime aes_decrypt aes_encrypt any any_value area ascii asin atan atan2 avg
	benchmark bin bin_to_uuid bit_and bit_count bit_length bit_or bit_xor
	cast ceil ceiling char_length character_length charset chr coalesce coercibility columns compress concat concat_ws
	connection_id conv convert_tz cos cot count crc32 crc32c curdate curtime cast
	date date_add date_format date_sub datediff datetime day dayname dayofmonth dayofweek dayofyear decode decode_oracle
	default degrees des_decrypt des_encrypt
	elt encode encrypt exp export_set extract extractvalue
	field find_in_set floor format format_bytes format_pico_time found_rows from_base64 from_days from_unixtime
	geomcollfromtext geometrycollection geometryfromtext get_format greatest group_concat grouping
	hex hour
	icu_version ifnull inet6_aton inet6_ntoa inet_aton inet_ntoa instr is_free_lock is_ipv4 is_ipv4_compat
	is_ipv4_mapped is_ipv6 is_used_lock is_uuid isnull
	json json_array json_array_append json_array_insert json_arrayagg json_compact json_contains json_contains_path
	json_depth json_detailed json_equals json_exists json_extract json_insert json_keys json_length json_loose json_merge
	json_merge_patch json_merge_preserve json_normalize json_object json_objectagg json_overlaps json_pretty json_query
	json_quote json_remove json_replace json_schema_valid json_search json_set json_storage_free json_storage_size
	json_type json_unquote json_valid json_value
	kdf
	last_day last_insert_id lastval lcase least length lengthb linestring ln load_file locate log log10 log2 lower lpad
	ltrim
	make_set makedate maketime max mbrcontains mbrcoveredby mbrcovers mbrdisjoint mbrequals mbrintersects mbroverlaps
	mbrtouches mbrwithin md5 median member microsecond mid min minute month monthname multilinestring multipoint
	multipolygon
	name_const natural_sort_key nchar now nullif nvl nvl2
	oct octet_length old_password ord
	password percentile_cont percentile_disc period_add period_diff pi point polygon position pow power
	ps_current_thread_id ps_thread_id
	quarter quote
	radians rand random_bytes regexp_instr regexp_like regexp_replace regexp_substr reverse rollup round row_count rpad
	rtrim
	sec_to_time second session_user sformat sha sha1 sha2 share sign signed sin sleep some soundex space sqrt
	st_area st_asbinary st_asgeojson st_astext st_aswkb st_aswkt st_boundary st_buffer st_centroid st_contains
	st_convexhull st_crosses st_difference st_dimension st_disjoint st_distance st_distance_sphere st_endpoint
	st_envelope st_equals st_exteriorring st_geohash st_geometryfromtext st_geometryn st_geometrytype st_geomfromgeojson
	st_geomfromtext st_geomfromwkb st_interiorringn st_intersection st_intersects st_isclosed st_isempty st_issimple
	st_isvalid st_latfromgeohash st_latitude st_length st_longfromgeohash st_longitude st_makeenvelope st_numgeometries
	st_numinteriorrings st_numpoints st_overlaps st_pointfromgeohash st_pointfromtext st_pointn st_polyfromtext
	st_simplify st_srid st_startpoint st_swapxy st_symdifference st_touches st_transform st_union st_validate st_within
	st_x st_y statement_digest statement_digest_text std stddev stddev_pop stddev_samp str_to_date strcmp subdate substr
	substring substring_index subtime sum sysdate system_user
	tan time time_format time_to_sec timediff timestamp timestampadd timestampdiff to_base64 to_char to_days to_seconds
	trim
	ucase uncompress uncompressed_length unhex unix_timestamp updatexml upper user uuid uuid_short uuid_to_bin
	validate_password_strength value var_pop var_samp variance version
	week weekday weekofyear weight_string
	year yearweek`)
