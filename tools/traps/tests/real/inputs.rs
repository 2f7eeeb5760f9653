//! Inputs made from a seed.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::Path;

use casemate_core::random::Random;

/// Lines of about so many words, some common and some rare, each with so many dots behind it: they
/// cost a compressor memory but few misses.
pub fn text(path: &Path, (words, dots): (u64, usize), bytes: usize, seed: u64) {
    let mut rng = Random::new(seed);
    let mut out = BufWriter::new(File::create(path).expect("an input file"));
    let mut done = 0;
    while done < bytes {
        let mut line = String::new();
        for _ in 0..words / 2 + rng.below(words + 3) {
            let word = if rng.below(4) == 0 { rng.next() } else { rng.below(3000) * 0x9e37_79b9 };
            let _ = write!(line, "{word:x} ");
        }
        line.extend(std::iter::repeat_n('.', dots));
        line.push('\n');
        done += line.len();
        out.write_all(line.as_bytes()).expect("room for the input");
    }
    out.flush().expect("room for the input");
}

/// C files with many functions that call each other and a large table each, a main function and a
/// Makefile.
pub fn c_program(directory: &Path, files: usize, table: usize, functions: usize) {
    let mut rng = Random::new(7);
    let objects: Vec<String> = (0..files).map(|i| format!("f{i}.o")).collect();
    let mut main = String::from("#include <stdio.h>\n");
    let mut calls = String::new();
    for file in 0..files {
        let mut code = String::from("#include <stdint.h>\nstatic const uint32_t table[] = {\n");
        for _ in 0..table {
            let _ = writeln!(code, "{}u,", rng.next() as u32);
        }
        code.push_str("};\n");
        for i in 0..functions {
            let (a, b, c) = (rng.next() as u32, rng.below(31) + 1, rng.below(13) + 2);
            let _ = write!(
                code,
                "uint32_t f{file}_{i}(uint32_t x, uint32_t *t) {{\n  for (uint32_t i = 0; i < {c}; i++) {{\n    \
                 x = (x ^ {a}u) * 2654435761u + t[(x >> {b}) & 15];\n    switch (x % 7) {{\n    \
                 case 0: t[i & 15] += x; break;\n    case 1: x ^= t[3]; break;\n    case 2: x += i * {a}u; \
                 break;\n    case 5: t[x & 15] ^= x >> 3; break;\n    default: x = x << 1 | x >> 31;\n    }}\n  \
                 }}\n"
            );
            if i > 0 {
                let _ = writeln!(
                    code,
                    "  x += f{file}_{}(x, t) >> 5;",
                    rng.below(i as u64).max(i as u64 - 1)
                );
            }
            let _ = write!(code, "  return x ^ table[x % {table}];\n}}\n");
        }
        fs::write(directory.join(format!("f{file}.c")), code).expect("a C file");
        let _ = writeln!(main, "unsigned f{file}_{}(unsigned, unsigned *);", functions - 1);
        let _ = writeln!(calls, "  printf(\"%u\\n\", f{file}_{}({file}, t));", functions - 1);
    }
    let _ = write!(
        main,
        "int main(void) {{\n  unsigned t[16] = {{1, 2, 3}};\n{calls}  return 0;\n}}\n"
    );
    fs::write(directory.join("main.c"), main).expect("a C file");
    let makefile = format!(
        "program: main.o {objects}\n\tgcc -o program main.o {objects}\n%.o: %.c\n\tgcc -O2 -c -o $@ $<\n",
        objects = objects.join(" ")
    );
    fs::write(directory.join("Makefile"), makefile).expect("the Makefile");
}

/// Commands for redis-cli: strings, lists, hashes, sets and sorted sets.
pub fn redis_commands(path: &Path, count: usize, seed: u64) {
    let mut rng = Random::new(seed);
    let mut out = BufWriter::new(File::create(path).expect("an input file"));
    for i in 0..count {
        let (key, value) = (rng.below(count as u64 / 2), rng.next());
        let text = format!("{value:016x}").repeat(1 + rng.below(100) as usize);
        let line = match rng.below(6) {
            0 => format!("RPUSH list:{} {text}", key % 500),
            1 => format!("HSET hash:{} field:{key} {text}", key % 300),
            2 => format!("SADD set:{} {value}", key % 200),
            3 => format!("ZADD sorted:{} {} member:{key}", key % 100, i % 1000),
            4 => format!("APPEND string:{} {value:x}", key % 5000),
            _ => format!("SET string:{key} {text}"),
        };
        writeln!(out, "{line}").expect("room for the input");
    }
    out.flush().expect("room for the input");
}
