"""Dicts, tuples, strings and arrays, built, mixed and summed up. SCALE times 20,000 entries."""
import array
import hashlib
import os
import random

scale = int(os.environ["SCALE"])
rng = random.Random(42)
table = {}
for i in range(20_000 * scale):
    table[rng.getrandbits(48)] = (i, str(i) * 200)
numbers = array.array("Q", (rng.getrandbits(64) for _ in range(150_000 * scale)))
rows = [[i ^ j for j in range(40)] for i in range(24_000 * scale)]
digest = hashlib.sha256()
for key in sorted(table):
    place, text = table[key]
    digest.update(b"%d %d %s\n" % (key, place, text.encode()))
print(digest.hexdigest())
keys = list(table)
rng.shuffle(keys)
total = 0
for key in keys[: 10_000 * scale]:
    place, text = table.pop(key)
    total += place ^ len(text) ^ numbers[place % len(numbers)]
print(len(table), total % (1 << 64))
numbers = array.array("Q", sorted(numbers))
print(hashlib.sha256(numbers.tobytes()).hexdigest())
for factor in range(8):
    print(sum(sum(row) * factor for row in rows))
