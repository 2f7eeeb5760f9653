//! The programs that are measured, and what they work on.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use casemate_core::random::Random;

use super::guest;

/// A program, and what it is given.
pub struct Program {
    /// For the table.
    pub name: &'static str,
    /// What it does.
    pub what: &'static str,
    /// The command, whose files are in this folder.
    command: fn(&Path) -> Vec<OsString>,
    /// A file in the folder that it reads: its name, and what writes it.
    input: Option<(&'static str, Writer)>,
    /// Files that it needs, beside the command.
    files: fn() -> Vec<PathBuf>,
    /// A file in the folder that it writes.
    pub output: Option<&'static str>,
}

type Writer = fn(&mut dyn Write) -> io::Result<()>;

/// The whole machine.
pub const GUEST: &str = "qemu-guest";

/// All of them.
pub const PROGRAMS: [Program; 12] = [
    Program {
        name: "ruby-hash",
        what: "a hash of 250,000 strings, 750,000 random look-ups",
        command: |_| words(&["ruby", "-e", RUBY]),
        input: None,
        files: Vec::new,
        output: None,
    },
    Program {
        name: "lua-sort",
        what: "2,000,000 numbers, sorted",
        command: |_| words(&["lua5.4", "-e", LUA]),
        input: None,
        files: Vec::new,
        output: None,
    },
    Program {
        name: "python-dict",
        what: "a dictionary of 250,000 numbers, 1,500,000 random look-ups",
        command: |_| words(&["python3", "-c", PYTHON]),
        input: None,
        files: Vec::new,
        output: None,
    },
    Program {
        name: "perl-ledger",
        what: "64 blocks of 1 MiB, inverted and counted in two rounds",
        command: |_| words(&["perl", "-e", PERL]),
        input: None,
        files: Vec::new,
        output: None,
    },
    Program {
        name: "sqlite",
        what: "1,000,000 rows in memory, an index, two queries",
        command: |_| words(&["sqlite3", ":memory:", SQL]),
        input: None,
        files: Vec::new,
        output: None,
    },
    Program {
        name: "cc1",
        what: "the C compiler at -O1, 700 functions",
        command: |folder| {
            let mut words = vec![compiler(), "-quiet".into(), "-O1".into(), "-o".into()];
            words.extend([folder.join("out.s").into(), folder.join("in.c").into()]);
            words
        },
        input: Some(("in.c", functions)),
        files: Vec::new,
        output: Some("out.s"),
    },
    Program {
        name: "zstd",
        what: "6 MiB of text at level 19, one thread",
        command: |folder| {
            let mut words = words(&["zstd", "-19", "-q", "-f", "--single-thread", "-o"]);
            words.extend([folder.join("out.zst").into(), folder.join("in.short").into()]);
            words
        },
        input: Some(("in.short", |to| text(to, 6 << 20))),
        files: Vec::new,
        output: Some("out.zst"),
    },
    Program {
        name: "sort",
        what: "24 MiB of lines in memory, one thread",
        command: |folder| {
            let mut words = words(&["env", "LC_ALL=C", "sort", "-S", "200M", "--parallel=1", "-o"]);
            words.extend([folder.join("out.sorted").into(), folder.join("in.text").into()]);
            words
        },
        input: Some(("in.text", |to| text(to, 24 << 20))),
        files: Vec::new,
        output: Some("out.sorted"),
    },
    Program {
        name: "c-build",
        what: "make -j2 of a C library: 8 files at -O1, each 60 functions",
        command: |folder| {
            let mut words = words(&["make", "-s", "-B", "-j2", "-f", "/dev/null", "-C"]);
            words.extend([folder.into(), "--eval".into(), MAKEFILE.into(), "lib.so".into()]);
            words
        },
        input: Some(("lib.c", library)),
        files: || vec![PathBuf::from("/usr/bin/gcc")],
        output: Some("lib.so"),
    },
    Program {
        name: "python-table",
        what: "150,000 rows of a table read, sorted, grouped by two columns, and summed up",
        command: |_| words(&["python3", "-c", PYTHON_TABLE]),
        input: None,
        files: Vec::new,
        output: None,
    },
    Program {
        name: "redis",
        what: "redis on a socket: 100,000 values set, 300,000 read",
        command: |folder| {
            let mut words = words(&["sh", "-c", REDIS, "sh"]);
            words.push(folder.into());
            words
        },
        input: None,
        files: || ["redis-server", "redis-cli"].map(|name| Path::new("/usr/bin").join(name)).into(),
        output: None,
    },
    Program {
        name: GUEST,
        what: "a guest of 160 MiB boots, sorts and copies in its RAM, powers off",
        command: guest::command,
        input: Some((guest::FILE_SYSTEM, guest::file_system)),
        files: guest::files,
        output: None,
    },
];

const RUBY: &str = r#"
h, x, s = {}, 1, 0
250_000.times { |i| h["key #{i * 7919 % 250_007}"] = i }
750_000.times do
  x = (x * 1103515245 + 12345) % 2147483648
  s += h["key #{x % 250_007}"] || 0
end
puts s"#;

const LUA: &str = "
local x, t, s = 1, {}, 0
for i = 1, 2000000 do
  x = (x * 1103515245 + 12345) % 2147483648
  t[i] = x / 2147483648
end
table.sort(t)
for i = 1, #t, 1000 do s = s + t[i] * i end
print(s)";

const PYTHON: &str = "
d = {i: str(i * i) for i in range(250000)}
x, s = 1, 0
for _ in range(1500000):
    x = (x * 1103515245 + 12345) % 2147483648
    s += len(d[x % 250000])
print(s)";

const PYTHON_TABLE: &str = "
import csv, io, statistics
def lines():
    x = 1
    for i in range(150000):
        x = (x * 1103515245 + 12345) % 2147483648
        yield f'{i},region {x % 7},product {x // 7 % 40},{x % 9973 / 100}'
rows = [(int(i), r, p, float(v)) for i, r, p, v in csv.reader(io.StringIO('\\n'.join(lines())))]
rows.sort(key=lambda row: row[3])
groups = {}
for _, region, product, value in rows:
    groups.setdefault((region, product), []).append(value)
for name in sorted(groups):
    values = groups[name]
    print(name, len(values), statistics.fmean(values), statistics.median(values))
print(rows[:5], rows[-5:])";

const PERL: &str = r#"
my ($ones, $s, @blocks) = ("\xff" x 1048576, 0);
my $page = pack("N*", map { $_ * 2654435761 % 4294967296 } 1 .. 1024);
for my $block (0 .. 63) {
    push @blocks, join "", map { $page ^ (pack("N", $block * 256 + $_) x 1024) } 0 .. 255;
}
for my $round (1 .. 2) {
    for my $block (@blocks) { $block ^= $ones; $s += unpack("%32b*", $block) * $round }
}
print "$s\n""#;

/// A file for each part of `lib.c`.
const MAKEFILE: &str = "
parts := $(shell seq 0 7)
lib.so: $(parts:%=part%.o) ; @gcc -shared -o $@ $^
part%.o: lib.c ; @gcc -O1 -fPIC -DPART=$* -c -o $@ $<
";
const PARTS: u64 = 8;
const FUNCTIONS_PER_PART: u64 = 60;

/// A server and its client; what is printed is the same each time.
const REDIS: &str = r#"
socket="$1/redis.sock"
redis-server --port 0 --unixsocket "$socket" --save '' --dir "$1" > /dev/null &
until redis-cli -s "$socket" ping > /dev/null 2>&1; do sleep 0.02; done
redis-cli -s "$socket" eval "
  for i = 1, 100000 do redis.call('set', 'key:' .. i, string.rep(i, 40)) end
  local x, s = 1, 0
  for i = 1, 300000 do
    x = (x * 1103515245 + 12345) % 2147483648
    s = s + #redis.call('get', 'key:' .. (x % 100000 + 1))
  end
  return s" 0
redis-cli -s "$socket" shutdown nosave
wait"#;

const SQL: &str = "
create table t(a integer primary key, b integer, c text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 1000000)
    insert into t select i, i * 7919 % 1000003, 'row ' || i * 31 % 999983 from n;
create index on_b on t(b);
select sum(length(c)) from t where b in (select a * 17 % 1000003 from t where a % 3 = 0);
select count(*), sum(x.a) from t x join t y on x.b = y.a;";

impl Program {
    /// Whether this machine has it.
    pub fn is_here(&self) -> bool {
        let words = (self.command)(Path::new("/"));
        let program = words.iter().find(|word| *word != "env" && *word != "LC_ALL=C");
        let Some(program) = program.map(Path::new) else { return false };
        if !(self.files)().iter().all(|file| file.exists()) {
            return false;
        }
        program.is_absolute() && program.exists()
            || std::env::var_os("PATH").is_some_and(|path| {
                std::env::split_paths(&path).any(|folder| folder.join(program).exists())
            })
    }

    /// Writes its input, and says how it is started.
    pub fn prepare(&self, folder: &Path) -> io::Result<Vec<OsString>> {
        if let Some((name, write)) = self.input {
            let mut file = BufWriter::new(File::create(folder.join(name))?);
            write(&mut file)?;
            file.flush()?;
        }
        Ok((self.command)(folder))
    }
}

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

/// Where the C compiler proper is; its driver would be a second process.
fn compiler() -> OsString {
    let output = Command::new("gcc").arg("-print-prog-name=cc1").output();
    let path = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    path.unwrap_or_else(|_| "cc1".to_owned()).into()
}

/// Lines of words out of a vocabulary, as text has them.
fn text(to: &mut dyn Write, bytes: usize) -> io::Result<()> {
    const WORDS: usize = 3000;
    const WORDS_PER_LINE: usize = 8;
    let mut random = Random::new(1);
    let mut word = || -> String {
        let letters = 2 + random.index(8);
        (0..letters).map(|_| char::from(b'a' + random.index(26) as u8)).collect()
    };
    let vocabulary: Vec<String> = (0..WORDS).map(|_| word()).collect();
    let mut written = 0;
    while written < bytes {
        let words = (0..WORDS_PER_LINE).map(|_| vocabulary[random.index(WORDS)].as_str());
        let line = words.collect::<Vec<_>>().join(" ");
        writeln!(to, "{line}")?;
        written += line.len() + 1;
    }
    Ok(())
}

/// A C file.
fn functions(to: &mut dyn Write) -> io::Result<()> {
    (0..700).try_for_each(|i| function(to, i))
}

/// The C file of a library, in parts that are compiled apart.
fn library(to: &mut dyn Write) -> io::Result<()> {
    for part in 0..PARTS {
        writeln!(to, "#if PART == {part}")?;
        let first = part * FUNCTIONS_PER_PART;
        (first..first + FUNCTIONS_PER_PART).try_for_each(|i| function(to, i))?;
        writeln!(to, "#endif")?;
    }
    Ok(())
}

/// The function of this number.
fn function(to: &mut dyn Write, i: u64) -> io::Result<()> {
    writeln!(
        to,
        "int f{i}(int a, int b) {{\n  int s = 0;\n  for (int i = 0; i < a; i++) {{\n    \
             s += (i * {}) ^ b;\n    if (s > {}) s -= b * {};\n  }}\n  switch (s & 7) {{\n  case \
             0: return s + {i};\n  case 1: return s * 3;\n  case 2: return b - {};\n  default: \
             return a ^ s;\n  }}\n}}",
        7 * i + 3,
        1000 * i + 17,
        i % 13 + 1,
        i % 29
    )
}
