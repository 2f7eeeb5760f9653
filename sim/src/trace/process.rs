//! Which process an address belongs to, in traces and mixes of several.
//!
//! Bits 57 to 59 of a virtual address are the number of its process. Below, addresses of programs
//! differ (57 bits, with five levels of page tables), and above they tell the kernel's: there these
//! bits are all set, so in the kernel's half they say what has to be flipped.

/// Where in an address the number of its process begins.
const SHIFT: u32 = 57;

/// As many processes as bits tell.
pub const MOST_PROCESSES: usize = 8;

/// An address of a program, as the address of a process of this number.
#[must_use]
#[inline]
pub fn in_process(address: u64, process: u32) -> u64 {
    address ^ u64::from(process) << SHIFT
}

/// The number of an address's process.
#[must_use]
#[inline]
pub fn process_of(address: u64) -> u32 {
    let of_kernel = (address as i64 >> 63) as u64;
    ((address ^ of_kernel) >> SHIFT) as u32 & (MOST_PROCESSES as u32 - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_keeps_its_place_and_tells_its_process() {
        let addresses =
            [0, 0x1000, 0x7fff_ffff_ffff, 0x01ff_ffff_ffff_ffff, 0xffff_ffff_ff60_0000, u64::MAX];
        for address in addresses {
            assert_eq!(process_of(address), 0);
            for process in 0..MOST_PROCESSES as u32 {
                let there = in_process(address, process);
                assert_eq!((process_of(there), in_process(there, process)), (process, address));
            }
        }
    }
}
