//! The examples of manual pages. A test parses each.

/// Command lines and what they do.
pub type Examples = &'static [(&'static str, &'static str)];

/// By command, without `casemate`.
pub const ALL: &[(&str, Examples)] = &[
    (
        "",
        &[
            (
                "casemate run -- redis-server",
                "run a program with its memory encrypted and verified",
            ),
            ("casemate doctor", "say whether this machine can do that"),
            ("casemate attack --scheme all", "attack every scheme with every attack"),
        ],
    ),
    (
        "run",
        &[
            ("casemate run --clear 64M -- sqlite3 a.db", "keep 64 MiB of plaintext at most"),
            (
                "casemate run --clear 25% --crypt-limit 1G --swap /var/tmp/crypt -- make -j2",
                "keep ciphertext beyond 1 GiB in a file without a name",
            ),
            (
                "casemate run --clear auto:64M..25% -- redis-server",
                "let the plaintext follow the working set, up to a quarter of the memory",
            ),
            (
                "casemate run --idle 30s -- ssh-agent -D",
                "encrypt also what fits once it was not asked for in 30 seconds",
            ),
            (
                "casemate run --policy policy.toml -- startx",
                "give single programs a part of the plaintext (docs/policies.md)",
            ),
            (
                "casemate run --heal --scrub 1h -- redis-server",
                "put one or two flipped bits of a page right, and look for them every hour",
            ),
            (
                "casemate run --rotate 1h --key-hiding tpm -- keyserver",
                "give pages new keys every hour, and keep what they come from in the TPM (docs/keys.md)",
            ),
            (
                "casemate run --verify log-hash --check-every 10s --hold-output -- ./solver",
                "verify by hashes of what was read and written, and print what was checked",
            ),
            (
                "casemate run --require-protected 80% -- python3 train.py",
                "end the run if more than a fifth of its memory stays in plaintext",
            ),
            ("casemate run --json=report.json -q -- xz -9 file", "write the report to a file"),
        ],
    ),
    (
        "set",
        &[
            ("casemate set 4711 --clear 32M", "change how much plaintext a run may keep"),
            ("casemate set 4711 --clear 10% --json", "the answer as JSON"),
            ("casemate set 4711 --rotate", "give all pages new keys, and destroy those before"),
        ],
    ),
    (
        "lock",
        &[
            ("casemate lock 4711", "ask for a passphrase, and lock a run under it"),
            ("casemate lock --make-key /etc/casemate.key", "make a key for the next line"),
            (
                "casemate lock --all --key /etc/casemate.key",
                "lock all runs without asking, before the machine sleeps",
            ),
        ],
    ),
    (
        "unlock",
        &[
            ("casemate unlock 4711", "ask for the passphrase, and let the run go on"),
            (
                "casemate unlock --all --passphrase-file -",
                "all runs, by a passphrase that another program pipes in",
            ),
        ],
    ),
    (
        "audit",
        &[
            (
                "casemate audit 4711 --marker correct-horse",
                "whether a secret can be read in a run's memory, and how often",
            ),
            (
                "casemate audit 4711 --watch --seconds 60 --json",
                "how much is readable on average, and how long pages stay so, as JSON",
            ),
            (
                "casemate audit --image dump --marker hex:9d1f3c5a7b2e4860",
                "a marker and AES keys in an image of a whole machine's memory",
            ),
        ],
    ),
    ("doctor", &[("casemate doctor --json", "the answer as JSON")]),
    (
        "setup",
        &[
            ("casemate setup --user alice", "let a user run protected programs"),
            ("casemate setup --dry-run", "say what would be changed"),
        ],
    ),
    (
        "attack",
        &[
            ("casemate attack --scheme aise+bmt --attack replay-data", "one cell of the matrix"),
            (
                "casemate attack --attack reuse-counter",
                "which schemes use a pad twice if a counter is put back",
            ),
            ("casemate attack --scheme all --json", "all of them, as JSON"),
            ("casemate attack --pid 4711 --kind flip", "flip a bit in a run's untrusted memory"),
        ],
    ),
    (
        "storage",
        &[
            ("casemate storage", "what schemes cost in memory, beside their papers"),
            ("casemate storage --pages 1G,1T", "what a fault costs in memories of these sizes"),
        ],
    ),
    ("seeds", &[("casemate seeds", "which services each kind of seeds can live with")]),
    (
        "exposure",
        &[
            (
                "casemate exposure --csv exposure.csv",
                "how much decayed memory saves a key, and curves to plot",
            ),
            (
                "casemate exposure --memory 16M --search-bits 80 --trials 500",
                "against a stronger attacker, and beside real searches of small memories",
            ),
        ],
    ),
    (
        "bench",
        &[("casemate bench accuracy", "the DDR model beside DRAMsim3, the core beside ChampSim")],
    ),
    (
        "bench pager",
        &[("casemate bench pager --clear 64M --runs 5", "the pager beside zram and the floor")],
    ),
    (
        "bench programs",
        &[("casemate bench programs --only lua-sort --parts 3", "one program, beside zram")],
    ),
    (
        "bench memeater",
        &[(
            "casemate bench memeater --mode random --pages 8192:32768:8192",
            "a microbenchmark in growing memory, read at random",
        )],
    ),
    ("bench schemes", &[("casemate bench schemes --only aise+bmt", "one scheme on real bytes")]),
    ("bench sim", &[("casemate bench sim --only none,aise+bmt --runs 3", "instructions a second")]),
    ("bench accuracy", &[("casemate bench accuracy --json", "the comparison as JSON")]),
    (
        "trace",
        &[(
            "casemate trace record --length 10000000 -- ls -R /usr",
            "record ten million instructions",
        )],
    ),
    (
        "trace record",
        &[
            (
                "casemate trace record -o sort.casetrace -- sort a.txt",
                "record a program, without those that it starts",
            ),
            (
                "casemate trace record --skip 1000000 --length 10000000 -- sqlite3 a.db",
                "a part of one",
            ),
        ],
    ),
    (
        "trace convert",
        &[
            (
                "casemate trace convert 600.champsimtrace.xz -o 600.casetrace",
                "another tool's trace",
            ),
            (
                "casemate trace convert --salvage damaged.casetrace -o whole.casetrace",
                "what is whole",
            ),
        ],
    ),
    (
        "trace merge",
        &[(
            "casemate trace merge --every 100_000 gcc.casetrace sqlite.casetrace -o both.casetrace",
            "two programs take turns on one processor",
        )],
    ),
    ("trace info", &[("casemate trace info --check gcc.casetrace", "read and verify all of it")]),
    (
        "trace head",
        &[("casemate trace head -n 20 --at 1000000 gcc.casetrace", "instructions from there on")],
    ),
    (
        "trace caches",
        &[("casemate trace caches --l2 1M,8,64 gcc.casetrace", "misses of two levels")],
    ),
    (
        "advise",
        &[
            (
                "casemate advise -- python3 program.py",
                "run a program once under QEMU, and say what --clear would cost it",
            ),
            (
                "casemate advise --trace gcc.casetrace --plot gcc.svg",
                "from a trace, with a drawing of page-ins over the Clear's size",
            ),
        ],
    ),
    (
        "trace pages",
        &[(
            "casemate trace pages --memory 1/2,12M gcc.casetrace sqlite.casetrace",
            "page-ins of each replacement policy in half of a program's pages, and in 12 MiB",
        )],
    ),
    (
        "trace misses",
        &[(
            "casemate trace misses gcc.casetrace --format dramsim3 -o - | casemate dram -",
            "what memory is asked for, replayed on the DDR model",
        )],
    ),
    (
        "sim",
        &[
            (
                "casemate sim --trace gcc.casetrace --scheme none,aise+bmt",
                "what a scheme costs in cycles",
            ),
            (
                "casemate sim --trace gcc.casetrace --set l2.size_bytes=256K,1M -o results",
                "for two sizes of cache, kept in a folder",
            ),
            (
                "casemate sim --trace gcc.casetrace --simpoints gcc.simpoints --weights gcc.weights --window 1000000",
                "the windows that SimPoint chose, by their weights",
            ),
            (
                "casemate sim --trace gcc.casetrace --scheme none,aise+bmt --sample auto --error 2%",
                "as many windows of the trace in detail as it takes to know within 2 %",
            ),
            (
                "casemate sim --preset delta-ecc --mix gcc.casetrace,sqlite.casetrace --scheme none,aise+bmt --length 5000000",
                "two programs at once, each on a core of its own, and each alone",
            ),
            ("casemate sim --scheme none,mac -- ls -R /usr", "a program while it runs"),
        ],
    ),
    (
        "dram",
        &[
            ("casemate dram --generate random-light --preset ddr3-1600", "a generated stream"),
            ("casemate dram requests.txt --set write_low=20 --json", "a file of requests"),
        ],
    ),
    (
        "plot",
        &[
            ("casemate plot results -o overhead.svg", "overheads as bars"),
            ("casemate plot results --kind lines --value ipc -o ipc.png", "samples as lines"),
        ],
    ),
    (
        "reproduce",
        &[
            ("casemate reproduce all --quick", "all papers, few workloads, short windows"),
            ("casemate reproduce aise-bmt --figure table-2", "one table"),
            ("casemate reproduce all --redraw --out papers", "only the pictures, of their tables"),
            ("casemate reproduce cryptkeeper --quick", "this machine's pager, measured (root)"),
        ],
    ),
    ("processor-key", &[("casemate processor-key -o cpu.key", "makes cpu.key and cpu.key.pub")]),
    (
        "seal-image",
        &[("casemate seal-image --for cpu.key.pub -o tool.image tool", "for one processor")],
    ),
    (
        "open-image",
        &[(
            "casemate open-image --key cpu.key tool.image -- --verbose",
            "run it, with an argument",
        )],
    ),
    (
        "certify",
        &[(
            "casemate certify --key cpu.key --input numbers -o sum.cert examples/certified/sum.asm",
            "run a program in untrusted memory and certify what it computed",
        )],
    ),
    (
        "verify-certificate",
        &[(
            "casemate verify-certificate --key cpu.key.pub --program examples/certified/sum.asm --input numbers sum.cert",
            "print what it proves",
        )],
    ),
    (
        "man",
        &[
            ("casemate man run | man -l -", "read a page"),
            ("casemate man -o /usr/local/share/man/man1", "install all pages"),
        ],
    ),
    (
        "completions",
        &[
            ("casemate completions bash", "the script for a shell"),
            ("casemate completions zsh -o _casemate", "the same in a file"),
        ],
    ),
];

/// Those of a command; none if there are none.
pub fn of(path: &[&str]) -> Examples {
    let name = path.join(" ");
    ALL.iter().find(|(known, _)| *known == name).map_or(&[], |(_, examples)| *examples)
}

/// The section of a page.
pub fn section(path: &[&str]) -> String {
    let escaped = |text: &str| text.replace('\\', "\\e").replace('-', "\\-");
    let mut text = ".SH EXAMPLES\n".to_owned();
    for (line, meaning) in of(path) {
        text += &format!(".TP\n\\fB{}\\fR\n{}\n", escaped(line), escaped(meaning));
    }
    text
}
