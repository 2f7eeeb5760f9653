\set ON_ERROR_STOP on
SET max_parallel_workers_per_gather = 2;
CREATE TABLE accounts (id int PRIMARY KEY, branch int, balance bigint, filler text);
INSERT INTO accounts SELECT i, i % 10, 0, md5(i::text) || md5((i * 7)::text) FROM generate_series(1, ROWS) i;
CREATE TABLE history (id int, account int, delta int, note text);
INSERT INTO history SELECT i, 1 + (i::bigint * 7919) % ROWS, (i * 31) % 1000 - 500, 'note ' || i FROM generate_series(1, ROWS) i;
CREATE INDEX ON history (account);
ANALYZE;
UPDATE accounts a SET balance = balance + h.delta FROM (SELECT account, sum(delta) AS delta FROM history GROUP BY account) h WHERE h.account = a.id;
SELECT branch, count(*), sum(balance) FROM accounts GROUP BY branch ORDER BY branch;
SELECT md5(string_agg(filler, ',' ORDER BY filler)) FROM accounts;
SELECT md5(string_agg(repeat(filler, 10), ',' ORDER BY id)) FROM accounts;
SELECT account, delta, sum(delta) OVER (PARTITION BY account % 100 ORDER BY id) FROM history ORDER BY id DESC LIMIT 50;
SELECT a.id, a.balance, h.note FROM accounts a JOIN history h ON h.account = a.id WHERE a.branch = 3 ORDER BY h.note LIMIT 50;
DELETE FROM history WHERE id % 3 = 0;
VACUUM history;
SELECT count(*), sum(delta) FROM history;
