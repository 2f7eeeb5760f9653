// Objects, maps, strings and typed arrays in a heap of about 100 MB, and 40 MB more for every
// SCALE.
const { createHash } = require("crypto");
const scale = Number(process.env.SCALE);
let state = 42;
const random = () => {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return state;
};
const table = new Map();
for (let i = 0; i < 30000 * scale; i++) {
  table.set(random() + ":" + i, {
    place: i,
    list: [random(), i, random()],
    name: ("n" + i).repeat(100),
  });
}
const numbers = new Float64Array(1000000 * scale).map(() => random());
const digest = createHash("sha256");
for (const key of [...table.keys()].sort()) {
  const row = table.get(key);
  digest.update(`${key} ${row.place} ${row.list} ${row.name.length}\n`);
  if (row.place % 3 === 0) table.delete(key);
}
console.log(digest.digest("hex"), table.size);
numbers.sort();
console.log(createHash("sha256").update(Buffer.from(numbers.buffer)).digest("hex"));
let sum = 0;
for (let round = 0; round < 10; round++) {
  const garbage = [];
  for (let i = 0; i < 20000; i++) garbage.push({ i, text: "x" + i });
  sum = (sum + garbage.reduce((all, one) => all + one.text.length * one.i, 0)) % 1e9;
}
console.log(sum);
