//! C without headers: structures, tables, functions with loops, switches, strings and calls of
//! earlier ones.

use std::fmt::Write;

use crate::random::Random;

/// About so many bytes.
#[must_use]
pub fn make(size_bytes: u64, seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut code = String::from(
        "typedef unsigned long word;\nstruct item { word key; int rank; struct item *next; double weight; };\n",
    );
    let mut functions = 0;
    while (code.len() as u64) < size_bytes || functions == 0 {
        if functions % 16 == 0 {
            table(&mut code, &mut random, functions / 16);
        }
        // Writing to a String cannot fail.
        let _ = match random.below(4) {
            0 => arithmetic(&mut code, &mut random, functions),
            1 => list(&mut code, &mut random, functions),
            2 => matrix(&mut code, &mut random, functions),
            _ => automaton(&mut code, &mut random, functions),
        };
        functions += 1;
    }
    code.into_bytes()
}

fn table(code: &mut String, random: &mut Random, number: u64) {
    *code += &format!("static const word table_{number}[64] = {{");
    for at in 0..64 {
        *code += if at % 4 == 0 { "\n  " } else { " " };
        *code += &format!("0x{:x}ul,", random.word());
    }
    *code += "\n};\n";
}

/// A call of an earlier function, or a constant.
fn value(random: &mut Random, function: u64, argument: &str) -> String {
    if function == 0 || random.below(3) == 0 {
        return format!("0x{:x}ul", random.below(1 << 32));
    }
    format!("f_{}({argument})", random.below(function))
}

fn arithmetic(code: &mut String, random: &mut Random, n: u64) -> std::fmt::Result {
    writeln!(code, "word f_{n}(word x)\n{{\n  word a = x, b = {};", value(random, n, "x >> 1"))?;
    for _ in 0..4 + random.below(12) {
        let (left, right) = (random.below(31) + 1, random.below(64));
        match random.below(4) {
            0 => writeln!(code, "  a = (a << {left}) ^ (b >> {left});")?,
            1 => writeln!(code, "  b += a * 0x{:x}ul + table_{}[{right}];", random.word(), n / 16)?,
            2 => writeln!(code, "  if (a % {} == {}) b = ~b - a;", left + 2, left)?,
            _ => writeln!(code, "  a ^= b & {};", value(random, n, "b"))?,
        }
    }
    writeln!(code, "  return a + b;\n}}")
}

fn list(code: &mut String, random: &mut Random, n: u64) -> std::fmt::Result {
    let call = value(random, n, "p->key");
    writeln!(
        code,
        "static struct item *g_{n}(struct item *p, word key)\n{{\n  struct item *best = 0;\n  for (; p; p = p->next) {{\n    if (p->key == key) return p;\n    if (!best || p->weight > best->weight) best = p;\n    p->rank += (int)({call} & {});\n  }}\n  return best;\n}}",
        random.below(255) + 1
    )?;
    writeln!(
        code,
        "word f_{n}(word x)\n{{\n  struct item items[{size}], *p;\n  int i;\n  for (i = 0; i < {size}; i++) {{\n    items[i].key = x * (word)i; items[i].rank = i;\n    items[i].weight = (double)i / {}.0; items[i].next = i ? items + i - 1 : 0;\n  }}\n  p = g_{n}(items + {size} - 1, x ^ 0x{:x}ul);\n  return p ? p->key + (word)p->rank : 0;\n}}",
        random.below(9) + 1,
        random.below(1 << 20),
        size = random.below(20) + 2,
    )
}

fn matrix(code: &mut String, random: &mut Random, n: u64) -> std::fmt::Result {
    let side = random.below(12) + 4;
    writeln!(
        code,
        "word f_{n}(word x)\n{{\n  double a[{side}][{side}], b[{side}][{side}], sum = 0;\n  int i, j, k;\n  for (i = 0; i < {side}; i++)\n    for (j = 0; j < {side}; j++) {{ a[i][j] = (double)(x % {}) + i; b[i][j] = i - j; }}\n  for (i = 0; i < {side}; i++)\n    for (j = 0; j < {side}; j++)\n      for (k = 0; k < {side}; k++) sum += a[i][k] * b[k][j];\n  return (word)sum ^ {};\n}}",
        random.below(1000) + 1,
        value(random, n, "x + 1"),
    )
}

fn automaton(code: &mut String, random: &mut Random, n: u64) -> std::fmt::Result {
    let states = random.below(14) + 3;
    writeln!(
        code,
        "word f_{n}(word x)\n{{\n  const char *s = \"state machine {n}: {:x}\";\n  int state = 0;\n  while (*s) {{\n    switch (state) {{",
        random.word()
    )?;
    for state in 0..states {
        let (to, letter) = (random.below(states), b'a' + random.below(26) as u8);
        writeln!(
            code,
            "    case {state}: state = *s > '{}' ? {to} : {}; x += {}; break;",
            letter as char,
            random.below(states),
            value(random, n, "x & 7")
        )?;
    }
    writeln!(code, "    default: return x;\n    }}\n    s++;\n  }}\n  return x * (word)state;\n}}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    #[test]
    fn a_compiler_takes_it() {
        let started = Command::new("cc")
            .args(["-x", "c", "-Werror=implicit", "-fsyntax-only", "-"])
            .stdin(Stdio::piped())
            .spawn();
        let mut cc = started.expect("the tests are built with cc");
        let mut pipe = cc.stdin.take().expect("a pipe");
        pipe.write_all(&make(300_000, 7)).expect("cc reads");
        drop(pipe);
        assert!(cc.wait().expect("cc ends").success());
    }
}
