-- The smoke script of sysbench: one event of statements as text and prepared. Its own workloads draw random numbers,
-- which differ from run to run.

function event()
   local con = sysbench.sql.driver():connect()

   local function show(result)
      for _ = 1, result.nrows do
         local row, line = result:fetch_row(), {}
         for i = 1, result.nfields do line[i] = tostring(row[i]) end
         print(table.concat(line, ", "))
      end
   end

   con:query("INSERT INTO people (name, born, score) VALUES ('Ada', '1815-12-10', 1.5), ('Grace', NULL, NULL)")
   show(con:query("SELECT * FROM people ORDER BY id"))
   print(con:query_row("SELECT COUNT(*), SUM(score) FROM people"))

   local insert = con:prepare("INSERT INTO people (name, score) VALUES (?, ?)")
   local name, score = insert:bind_create(sysbench.sql.type.VARCHAR, 40), insert:bind_create(sysbench.sql.type.DOUBLE)
   insert:bind_param(name, score)
   local select = con:prepare("SELECT id, name FROM people WHERE id >= ? ORDER BY id")
   local from = select:bind_create(sysbench.sql.type.INT)
   select:bind_param(from)
   for i, word in ipairs({"one", "two", "three"}) do
      name:set(word)
      score:set(i / 2)
      insert:execute()
      from:set(i)
      print(select:execute().nrows)
   end

   con:query("BEGIN")
   con:query("DELETE FROM people")
   con:query("ROLLBACK")
   con:query("BEGIN")
   con:query("UPDATE people SET score = 9 WHERE id = 1")
   con:query("COMMIT")

   con:query("INSERT INTO blobs VALUES (1, '" .. string.rep("b", os.getenv("SMOKE_BLOB") * 1024 * 1024) .. "')")
   print(#con:query_row("SELECT data FROM blobs WHERE id = 1"))

   con:bulk_insert_init("INSERT INTO people (name) VALUES")
   for i = 1, 100 do con:bulk_insert_next("('bulk " .. i .. "')") end
   con:bulk_insert_done()

   con:query("INSERT IGNORE INTO people (name) VALUES ('Ada')")
   print((pcall(con.query, con, "INSERT INTO people (name) VALUES ('Ada')")))
   con:disconnect()
end
