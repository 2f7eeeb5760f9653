PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA cache_size = -400000;
PRAGMA temp_store = MEMORY;
CREATE TABLE a (id INTEGER PRIMARY KEY, k INTEGER, t TEXT);
CREATE TABLE b (id INTEGER PRIMARY KEY, k INTEGER, v REAL);
WITH RECURSIVE n(i, s) AS (
  SELECT 1, 42 UNION ALL SELECT i + 1, (s * 1103515245 + 12345) % 2147483648 FROM n WHERE i < ROWS
) INSERT INTO a SELECT i, s % 100000, 'text ' || s || ' of row ' || i || hex(s) || printf('%.1000c', 'x') FROM n;
WITH RECURSIVE n(i, s) AS (
  SELECT 1, 43 UNION ALL SELECT i + 1, (s * 1103515245 + 12345) % 2147483648 FROM n WHERE i < ROWS
) INSERT INTO b SELECT i, s % 100000, s / 7.0 FROM n;
CREATE INDEX a_k ON a (k);
CREATE INDEX b_k ON b (k, v);
SELECT count(*), sum(a.id), round(sum(b.v), 3) FROM a JOIN b ON a.k = b.k;
SELECT a.k, count(*), substr(max(a.t), 1, 40) FROM a JOIN b USING (id) GROUP BY a.k % 64 ORDER BY a.k LIMIT 40;
UPDATE a SET t = t || ' again' WHERE k % 3 = 0;
DELETE FROM b WHERE id % 5 = 0;
SELECT count(*), sum(length(t)) FROM a;
SELECT substr(t, 1, 40) FROM a ORDER BY t DESC LIMIT 20;
PRAGMA integrity_check;
