use super::*;

/// Pipes in place of the streams: what is written to them is read as a program's output, and
/// nothing starts the thread that writes.
fn held() -> (Arc<HeldOutput>, Ends) {
    HeldOutput::new(false).expect("pipes")
}

fn say(ends: &Ends, stream: usize, bytes: &[u8]) {
    let mut file = File::from(ends.0[stream].try_clone().expect("a descriptor"));
    file.write_all(bytes).expect("there is room in a pipe");
}

fn released(output: &HeldOutput) -> Vec<u8> {
    let held = output.held.lock();
    held.released.iter().flat_map(|chunk| chunk.bytes.clone()).collect()
}

#[test]
fn only_what_was_read_before_the_mark_is_released() {
    let (output, ends) = held();
    say(&ends, 0, b"before");
    let mark = output.mark_all();
    say(&ends, 0, b"after");
    let later = output.mark_all();
    assert!(released(&output).is_empty() && output.holds_any());
    output.release(mark);
    assert_eq!(released(&output), b"before");
    output.release(mark);
    assert_eq!(released(&output), b"before", "a mark releases nothing twice");
    output.release(later);
    assert_eq!(released(&output), b"beforeafter");
}

#[test]
fn a_mark_is_of_what_was_read_and_not_of_what_is_in_the_pipe() {
    let (output, ends) = held();
    say(&ends, 0, b"written, not read");
    let mark = output.mark();
    output.mark_all();
    output.release(mark);
    assert!(released(&output).is_empty());
}

#[test]
fn what_no_check_released_is_given_up() {
    let (output, ends) = held();
    say(&ends, 0, &[b'x'; 5000]);
    output.mark_all();
    assert_eq!(output.finish(|_| true), 5000);
    assert!(!output.holds_any() && released(&output).is_empty());
}

#[test]
fn what_is_given_up_is_read_on_so_that_the_program_does_not_wait() {
    let (output, ends) = held();
    say(&ends, 0, b"before a violation");
    let mark = output.mark_all();
    output.give_up();
    say(&ends, 0, b"and after");
    output.mark_all();
    output.release(mark);
    assert!(released(&output).is_empty() && !output.holds_any());
    assert_eq!(output.finish(|_| true), 27);
}

/// A reader that takes nothing: what was released is given up when it is not waited for any more.
#[test]
fn who_waits_for_a_reader_may_stop_waiting() {
    let (output, ends) = held();
    say(&ends, 0, b"never read");
    let mark = output.mark_all();
    output.release(mark);
    assert_eq!(output.finish(|idle| idle < LOOK), 10);
}

#[test]
fn many_small_writes_count_more_than_their_bytes() {
    let (output, ends) = held();
    for _ in 0..100 {
        say(&ends, 0, b"x");
        output.mark_all();
    }
    let held = output.held.lock();
    assert_eq!(held.held_bytes, 100 * (1 + CHUNK_COST_BYTES));
    assert!(held.waiting.iter().all(|chunk| chunk.bytes.capacity() == 1));
}

/// A certificate of a part would say that the program wrote no more.
#[test]
fn there_is_no_hash_of_output_whose_reader_has_gone() {
    let (output, ends) = HeldOutput::new(true).expect("pipes");
    say(&ends, 0, b"read");
    let mark = output.mark_all();
    output.release(mark);
    assert!(output.digests().is_some_and(|digests| digests[0].bytes == 4));
    output.held.lock().give_up_stream(0, &ErrorKind::BrokenPipe.into());
    assert!(output.digests().is_none() && output.trouble().is_none());
}
