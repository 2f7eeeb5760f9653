//! The table that people read.

use std::fmt::Write;

use super::{Figure, Mode, Report, Row, Step, System};
use crate::bench::numbers::Spread;
use crate::size;

/// Width of a cell with median and spread.
const CELL: usize = 24;
/// Width of a ratio.
const RATIO: usize = 9;

/// All of it.
pub fn table(report: &Report) -> String {
    let mut text = heading(report);
    for row in &report.rows {
        for step in Step::ALL {
            line(&mut text, row, step);
        }
    }
    let is_killed = |row: &Row| row.systems.values().any(|cell| cell.ended.is_some());
    if report.rows.iter().any(is_killed) {
        text.push_str("\nkilled: by the kernel, for want of memory in its cgroup.\n");
    }
    text.push_str(
        "\none handler: casemate on one processor, which the program and the keeper share.\nzram \
         and swap file: unencrypted.\n",
    );
    for note in &report.notes {
        let _ = writeln!(text, "Note: {note}");
    }
    text
}

fn heading(report: &Report) -> String {
    let reads = match report.mode {
        Mode::Stripe => "from the oldest page to the youngest (stripe)",
        Mode::Random => "pages chosen at random (random)",
    };
    let mut text = format!(
        "memeater reads {reads}, {} runs. {}.\nThe Clear, and the limit of Linux that swaps: {}. \
         Microseconds a page, in all seconds: median (least-greatest).\n\n{:>8}  {:<9}",
        report.header.runs,
        report.header.machine,
        size::format(report.clear_bytes),
        "pages",
        "step"
    );
    for system in System::ALL {
        let _ = write!(text, "{:>CELL$}", system.name());
        if system != System::Plain {
            let _ = write!(text, "{:>RATIO$}", "/plain");
        }
    }
    text.push('\n');
    text
}

fn line(text: &mut String, row: &Row, step: Step) {
    let pages = if step == Step::ALL[0] { row.pages.to_string() } else { String::new() };
    let name = if step == Step::Total { "in all, s" } else { step.word() };
    let _ = write!(text, "{pages:>8}  {name:<9}");
    for system in System::ALL {
        let cell = row.systems.get(&system);
        let figure: Option<&Figure> = cell.and_then(|cell| cell.steps.get(&step));
        let ended = || cell.and_then(|cell| cell.ended).unwrap_or("-").to_owned();
        let _ = write!(text, "{:>CELL$}", figure.map_or_else(ended, |figure| show(figure.spread)));
        if system != System::Plain {
            let over = figure.and_then(|figure| figure.over_plain);
            let over = over.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}x"));
            let _ = write!(text, "{over:>RATIO$}");
        }
    }
    text.push('\n');
}

/// With more decimals the less it is: allocating takes less than a nanosecond a page.
fn show(spread: Spread) -> String {
    let decimals = match spread.max {
        max if max >= 10.0 => 2,
        max if max >= 0.1 => 3,
        _ => 4,
    };
    spread.show_with(decimals)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::memeater::program::Times;
    use crate::bench::results::Header;

    /// Runs over 1000 pages, from what reading them took, in seconds; all other steps took the
    /// same each time.
    fn recorded(read_s: [f64; 3]) -> Vec<Times> {
        let times = |read_s| Times {
            allocate_s: 0.000_001,
            write_s: 0.005,
            read_s,
            free_s: 0.02,
            total_s: read_s + 0.5,
        };
        read_s.map(times).to_vec()
    }

    fn row() -> Row {
        let mut row = Row::new(1000, &System::ALL);
        let mut record = |system, read_s| {
            row.systems.entry(system).or_default().runs = recorded(read_s);
        };
        record(System::Plain, [0.003, 0.001, 0.002]);
        record(System::Casemate, [0.009, 0.25, 0.008]);
        record(System::Zram, [0.001; 3]);
        row.systems.entry(System::Zram).or_default().ended = Some("killed");
        row.sum_up();
        row
    }

    #[test]
    fn figures_are_a_page_s_microseconds_and_times_plain() {
        let row = row();
        assert_eq!(row.bytes, 4_096_000);
        let figure = |system, step| row.systems[&system].steps[&step];
        let read = figure(System::Casemate, Step::Read);
        // 9 milliseconds over 1000 pages are 9 microseconds a page, 4.5 times 2.
        let close = |is: f64, wanted: f64| (is / wanted - 1.0).abs() < 1e-9;
        assert!(close(read.spread.median, 9.0), "{read:?}");
        assert!(close(read.spread.min, 8.0) && close(read.spread.max, 250.0), "{read:?}");
        assert!(close(read.over_plain.expect("there are plain runs"), 4.5), "{read:?}");
        let total = figure(System::Casemate, Step::Total);
        assert!(close(total.spread.median, 0.509), "seconds: {total:?}");
        assert!(close(total.over_plain.expect("as above"), 0.509 / 0.502), "{total:?}");
        assert!(close(figure(System::Plain, Step::Allocate).spread.median, 0.001));
        assert!(close(figure(System::Plain, Step::Write).spread.median, 5.0));
        assert!(close(figure(System::Plain, Step::Free).spread.median, 20.0));
        assert_eq!(figure(System::Plain, Step::Read).over_plain, None);
        assert!(row.systems[&System::Zram].steps.is_empty(), "some runs were killed");
        assert!(!row.systems.contains_key(&System::SwapFile));
    }

    #[test]
    fn each_line_has_a_figure_for_each_system_or_says_why_not() {
        let report = Report {
            header: Header::new(3),
            mode: Mode::Stripe,
            clear_bytes: 2 << 20,
            rows: vec![row()],
            notes: vec!["swap file: not measured: it needs root".to_owned()],
        };
        let table = table(&report);
        let line = |step: &str| {
            let line = table.lines().find(|line| line.contains(step)).expect(step);
            line.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            line(" read "),
            "read 2.000 (1.000-3.000) 9.00 (8.00-250.00) 4.50x - - killed - - -"
        );
        assert_eq!(
            line(" allocate "),
            "1000 allocate 0.0010 (0.0010-0.0010) 0.0010 (0.0010-0.0010) 1.00x - - killed - - -"
        );
        assert!(
            line(" in all, s ").starts_with("in all, s 0.502 (0.501-0.503) 0.509 (0.508-0.750)")
        );
        for said in ["2 MiB", "(stripe), 3 runs", "killed: by the kernel", "Note: swap file: not"] {
            assert!(table.contains(said), "{said}: {table}");
        }
        let [header, read] = ["plain", " read "].map(|word| {
            table.lines().find(|line| line.contains(word) && !line.contains("memeater"))
        });
        let widths = [header, read].map(|line| line.expect("both").chars().count());
        assert_eq!(widths[0], widths[1], "columns stand under their names: {table}");
    }
}
