//! Scripts for SQLite: two tables of random rows, indices, joins, groups and updates; and accounts
//! that payments change anywhere.

use crate::random::Random;

/// Bytes of the database for each row of the larger table.
const ROW_BYTES: u64 = 100;

/// A script whose database has about so many bytes.
#[must_use]
pub fn make(size_bytes: u64, seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let rows = (size_bytes / ROW_BYTES).max(16);
    let few = rows / 8;
    let step = random.below(rows) | 1;
    // Rows are computed by the script, or it would be read more than it works.
    format!(
        "PRAGMA journal_mode = OFF;
CREATE TABLE customers(id INTEGER PRIMARY KEY, name TEXT, town INTEGER);
CREATE TABLE orders(id INTEGER PRIMARY KEY, customer INTEGER, amount INTEGER, note TEXT);
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {few})
  INSERT INTO customers SELECT i, 'name ' || (i * {step} % 99991), i * 7919 % 100 FROM n;
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {rows})
  INSERT INTO orders SELECT i, (i * {step} + i / 3) % {few}, i * 104729 % 1000, 'note ' || hex(i * {step}) FROM n;
CREATE INDEX by_customer ON orders(customer);
CREATE INDEX by_amount ON orders(amount, customer);
SELECT town, count(*), sum(amount) FROM customers JOIN orders ON customers.id = customer GROUP BY town ORDER BY 3 DESC LIMIT 5;
UPDATE orders SET amount = amount + 1 WHERE customer % 3 = 0;
SELECT count(*) FROM orders a JOIN orders b ON a.amount = b.customer WHERE a.id % 17 = 0;
DELETE FROM orders WHERE amount < 100;
SELECT name, max(amount) FROM customers JOIN orders ON customers.id = customer WHERE note LIKE '%7%' GROUP BY name ORDER BY 2 DESC, 1 LIMIT 5;
SELECT count(*), sum(amount) FROM orders;
"
    )
    .into_bytes()
}

/// Bytes of the database for each account.
const ACCOUNT_BYTES: u64 = 110;

/// A script that fills a table of about so many bytes with accounts, and then books payments to
/// random ones, as many as there are: an update of an account and of its branch, and a line of
/// history each.
#[must_use]
pub fn updates(size_bytes: u64, seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let accounts = (size_bytes / ACCOUNT_BYTES).max(16);
    let (factor, start) = (random.below(1 << 27) * 8 + 5, random.below(1 << 30));
    // Payments are made by a trigger, compiled once: with a statement for each, SQLite would parse
    // more than it updates. Accounts come from a linear congruential generator modulo 2^32.
    format!(
        "PRAGMA journal_mode = OFF;
CREATE TABLE branches(id INTEGER PRIMARY KEY, balance INTEGER);
CREATE TABLE accounts(id INTEGER PRIMARY KEY, branch INTEGER, balance INTEGER, filler TEXT);
CREATE TABLE history(account INTEGER, amount INTEGER);
CREATE VIEW payments AS SELECT account, amount FROM history;
CREATE TRIGGER book INSTEAD OF INSERT ON payments BEGIN
  UPDATE accounts SET balance = balance + new.amount WHERE id = new.account;
  UPDATE branches SET balance = balance + new.amount WHERE id = new.account % 100;
  INSERT INTO history VALUES (new.account, new.amount);
END;
BEGIN;
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < 100)
  INSERT INTO branches SELECT i, 0 FROM n;
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {accounts})
  INSERT INTO accounts SELECT i, i % 100, 0, printf('%090d', i) FROM n;
WITH RECURSIVE n(i, x) AS (SELECT 0, {start}
    UNION ALL SELECT i + 1, (x * {factor} + 12345) & 4294967295 FROM n WHERE i + 1 < {accounts})
  INSERT INTO payments SELECT (x >> 4) % {accounts}, x % 1999 - 999 FROM n;
COMMIT;
SELECT (SELECT sum(balance) FROM accounts) = (SELECT sum(amount) FROM history),
  (SELECT sum(balance) FROM branches) = (SELECT sum(amount) FROM history),
  (SELECT count(*) FROM history), (SELECT count(*) FROM accounts WHERE balance != 0);
"
    )
    .into_bytes()
}
