use super::*;

fn zcc(major: u64, minors: &[(usize, u64)]) -> CounterBytes {
    let mut line = [0; LINE_BYTES];
    write_zcc(&mut line, major, &array(minors));
    line
}

fn array(minors: &[(usize, u64)]) -> [u64; SLOTS] {
    let mut all = [0; SLOTS];
    minors.iter().for_each(|(slot, minor)| all[*slot] = *minor);
    all
}

fn counters(line: &CounterBytes) -> [u128; SLOTS] {
    std::array::from_fn(|slot| counter(line, slot))
}

#[test]
fn literal_line_zcc() {
    let mut line = [0; LINE_BYTES];
    // Format 0, size 16 (bit 5), major 5 (bits 7 and 9).
    (line[0], line[1]) = (0b1010_0000, 0b0000_0010);
    (line[8], line[23]) = (0b0000_1000, 0b1000_0000); // slots 3 and 127
    line[24..28].copy_from_slice(&[0x34, 0x12, 0xff, 0xff]);
    line[56..].fill(0xee);
    assert_eq!(counter(&line, 3), 5 + 0x1234);
    assert_eq!(counter(&line, 127), 5 + 0xffff);
    assert_eq!(counter(&line, 4), 5);
    // A smaller slot is stored before them.
    assert_eq!(increment(&mut line, 1), Ok(Increment::Counted));
    let mut expected = line;
    expected[8] = 0b0000_1010;
    expected[24..30].copy_from_slice(&[1, 0, 0x34, 0x12, 0xff, 0xff]);
    assert_eq!(line, expected);
    assert_eq!(increment(&mut line, 3), Ok(Increment::Counted));
    expected[26] = 0x35;
    assert_eq!(line, expected);
    // 5 + 0xffff + 1 for all; the MAC's field stays.
    assert_eq!(increment(&mut line, 127), Ok(Increment::Overflow(0..128)));
    expected[..56].fill(0);
    let header: u64 = 16 << 1 | 0x1_0005 << 7;
    expected[..8].copy_from_slice(&header.to_le_bytes());
    assert_eq!(line, expected);
}

#[test]
fn literal_line_mcr() {
    let mut line = [0; LINE_BYTES];
    let header: u64 = 1 | 0x1_2345_6789_abcd << 1 | 0x55 << 50 | 0x7f << 57;
    line[..8].copy_from_slice(&header.to_le_bytes());
    line[8] = 0b1100_0101; // slot 0: 5, slot 1: 0, the two low bits of slot 2
    line[9] = 0b0000_0001; // slot 2: 7
    line[55] = 0b1100_0000; // slot 127: bits 445 to 447, so 6
    line[56..].fill(0xee);
    let major = 0x1_2345_6789_abcd << 7;
    for (slot, rest) in [(0, 0x55 + 5), (1, 0x55), (2, 0x55 + 7), (127, 0x7f + 6), (64, 0x7f)] {
        assert_eq!(counter(&line, slot), major + rest, "slot {slot}");
    }
    let mut expected = line;
    assert_eq!(increment(&mut line, 0), Ok(Increment::Counted));
    expected[8] = 0b1100_0110;
    assert_eq!(line, expected);
    // Slot 2 overflows and slot 1 is zero: the first half goes to base 0x55 + 8.
    assert_eq!(increment(&mut line, 2), Ok(Increment::Overflow(0..64)));
    let header: u64 = 1 | 0x1_2345_6789_abcd << 1 | 0x5d << 50 | 0x7f << 57;
    expected[..8].copy_from_slice(&header.to_le_bytes());
    expected[8..10].fill(0);
    assert_eq!(line, expected);
    // The second half's base is at its end: everything goes to ZCC, one above the largest.
    for _ in 0..2 {
        increment(&mut line, 127).expect("far from the end");
    }
    let expected = major as u64 + 0x7f + 7 + 1;
    assert_eq!(counters(&line), [u128::from(expected); SLOTS]);
    assert_eq!((format(&line), zcc_size(&line), &line[56..]), (ZCC, 16, &[0xee; 8][..]));
}

/// The paper's table of sizes: with one minor more than fits a size, the next size begins.
#[test]
fn sizes_shrink_as_more_are_in_use() {
    let mut line = initial();
    for used in 1..=64 {
        let (_, size) = SIZES.into_iter().find(|(most, _)| used <= *most).expect("64 at most");
        let changed = [17, 33, 37, 43, 52].contains(&used);
        let expected = if changed { Increment::Reencoded } else { Increment::Counted };
        assert_eq!(increment(&mut line, (used * 37) % SLOTS), Ok(expected), "{used} in use");
        assert_eq!(zcc_size(&line), size);
        assert_eq!(counters(&line).iter().sum::<u128>(), used as u128);
    }
    // The 65th: MCR, with the same counters.
    let mut expected = counters(&line);
    expected[(65 * 37) % SLOTS] += 1;
    assert_eq!(increment(&mut line, (65 * 37) % SLOTS), Ok(Increment::Reencoded));
    assert_eq!((format(&line), counters(&line)), (MCR, expected));
    for (most, size) in SIZES {
        assert!(most * size as usize <= NONZERO_BITS);
    }
}

#[test]
fn a_large_minor_does_not_fit_the_next_size() {
    let mut minors: Vec<(usize, u64)> = (0..16).map(|slot| (slot, 1)).collect();
    minors[3].1 = 256;
    let mut line = zcc(10, &minors);
    assert_eq!(increment(&mut line, 99), Ok(Increment::Overflow(0..128)));
    assert_eq!(line, zcc(10 + 257, &[]), "256 is used by slot 3");
    minors[3].1 = 255;
    let mut line = zcc(10, &minors);
    assert_eq!(increment(&mut line, 99), Ok(Increment::Reencoded));
    minors.push((99, 1));
    assert_eq!(line, zcc(10, &minors));
}

#[test]
fn a_large_minor_does_not_fit_mcr() {
    let mut minors: Vec<(usize, u64)> = (0..64).map(|slot| (slot, 1)).collect();
    minors[3].1 = 8;
    let mut line = zcc(1000, &minors);
    assert_eq!(increment(&mut line, 99), Ok(Increment::Overflow(0..128)));
    let mut expected = [0; LINE_BYTES];
    write_mcr(&mut expected, 1009, &[0; SLOTS]);
    assert_eq!(line, expected);
}

#[test]
fn rebasing_keeps_the_counters() {
    let minors: [u64; SLOTS] = std::array::from_fn(|slot| if slot < 64 { 2 } else { 0 });
    let mut line = [0; LINE_BYTES];
    write_mcr(&mut line, 1000, &minors);
    for _ in 0..5 {
        assert_eq!(increment(&mut line, 9), Ok(Increment::Counted));
    }
    let mut expected = counters(&line);
    assert_eq!(increment(&mut line, 9), Ok(Increment::Reencoded));
    expected[9] += 1;
    assert_eq!(counters(&line), expected);
    assert_eq!([base(&line, 0), base(&line, 1)], [1002 % 128, 1000 % 128]);
}

#[test]
fn the_end_is_an_error() {
    let mut line = zcc(LARGEST_56 - 3, &[(5, 3)]);
    let before = line;
    assert_eq!(increment(&mut line, 5), Err(Exhausted));
    assert_eq!(line, before);
    assert_eq!(increment(&mut line, 6), Ok(Increment::Counted));
    // No counter is left above the largest one.
    let mut minors: Vec<(usize, u64)> = (0..16).map(|slot| (slot, 300)).collect();
    minors[0].1 = 400;
    let mut line = zcc(LARGEST_56 - 400, &minors);
    let before = line;
    assert_eq!(increment(&mut line, 99), Err(Exhausted));
    assert_eq!(line, before);
    // Both halves of MCR at their end.
    let mut line = [0; LINE_BYTES];
    write_mcr(&mut line, LARGEST_56 - 7, &array(&[(3, 7), (64, 6)]));
    let before = line;
    assert_eq!(increment(&mut line, 3), Err(Exhausted));
    assert_eq!(line, before);
}

/// Lines that we never write: too many minors for their size, sizes that do not exist, a major of
/// 57 bits.
#[test]
fn any_line_can_be_read() {
    let mut line = [0xff; LINE_BYTES];
    line[0] = 0b0111_1110; // ZCC, size 63
    assert_eq!(counter(&line, 127), (1 << 57) - 2);
    for size in 0..64 {
        line[0] = size << 1 | 0x80;
        for slot in 0..SLOTS {
            let minor = counter(&line, slot) - ((1 << 57) - 1);
            let fits = (1..=16).contains(&size) && (slot + 1) * usize::from(size) <= 256;
            assert_eq!(minor, if fits { (1 << size) - 1 } else { 0 });
        }
        assert_eq!(increment(&mut line.clone(), 3), Err(Exhausted));
    }
}
