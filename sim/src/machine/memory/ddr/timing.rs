//! Timing parameters by JEDEC's names, in clocks of the memory (nCK).
//!
//! Where a standard gives nanoseconds or the larger of clocks and nanoseconds, the comment has
//! them, and the clocks are rounded up as JESD79-4, section 13.5, does; tREFI is rounded down.

use crate::machine::error::{ConfigError, within};

/// Parameters of one speed bin. DDR3 has no bank groups: there, `_s` and `_l` are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Half of the burst length: clocks of a burst on the data bus (BL8: 4).
    pub burst: u64,
    /// CL, CAS latency: from a read to its first data.
    pub cl: u64,
    /// CWL, CAS write latency: from a write to its first data.
    pub cwl: u64,
    /// tRCD: from activating a row to reading or writing in it.
    pub t_rcd: u64,
    /// tRP: from precharging a bank to activating a row of it.
    pub t_rp: u64,
    /// tRAS: from activating a row to precharging it.
    pub t_ras: u64,
    /// tRRD_S: between two activations in different bank groups of a rank.
    pub t_rrd_s: u64,
    /// tRRD_L: between two activations in a bank group.
    pub t_rrd_l: u64,
    /// tFAW: in so many clocks, a rank activates four rows at most.
    pub t_faw: u64,
    /// tCCD_S: between two reads or two writes in different bank groups of a rank.
    pub t_ccd_s: u64,
    /// tCCD_L: between two reads or two writes in a bank group.
    pub t_ccd_l: u64,
    /// tWTR_S: from the end of written data to a read in another bank group of the rank.
    pub t_wtr_s: u64,
    /// tWTR_L: from the end of written data to a read in the bank group.
    pub t_wtr_l: u64,
    /// tWR: from the end of written data to precharging the bank.
    pub t_wr: u64,
    /// tRTP: from a read to precharging the bank.
    pub t_rtp: u64,
    /// tREFI: between two refreshes of a rank, on average; here, exactly.
    pub t_refi: u64,
    /// tRFC: from a refresh to the next command of the rank.
    pub t_rfc: u64,
    /// Idle clocks of the data bus when its direction or the rank changes: the 2 of JESD79-3F's
    /// distance from a read to a write, RL + tCCD + 2 - WL.
    pub turnaround: u64,
}

impl Timing {
    /// DDR3-1600K (11-11-11), devices of 4 Gbit with 8 data lines; tCK is 1.25 ns. JESD79-3F,
    /// tables of speed bins, of timing parameters by speed bin, and of refresh parameters.
    pub const DDR3_1600K: Timing = Timing {
        burst: 4,
        cl: 11,
        cwl: 8,
        t_rcd: 11,  // 13.75 ns
        t_rp: 11,   // 13.75 ns
        t_ras: 28,  // 35 ns
        t_rrd_s: 5, // max(4 nCK, 6 ns), pages of 1 KB
        t_rrd_l: 5,
        t_faw: 24, // 30 ns, pages of 1 KB
        t_ccd_s: 4,
        t_ccd_l: 4,
        t_wtr_s: 6, // max(4 nCK, 7.5 ns)
        t_wtr_l: 6,
        t_wr: 12,      // 15 ns
        t_rtp: 6,      // max(4 nCK, 7.5 ns)
        t_refi: 6_240, // 7.8 us
        t_rfc: 208,    // 260 ns
        turnaround: 2,
    };

    /// DDR4-2400R (16-16-16), devices of 8 Gbit with 8 data lines; tCK is 0.833 ns. JESD79-4,
    /// tables of speed bins, of timing parameters by speed bin, and of refresh parameters.
    pub const DDR4_2400R: Timing = Timing {
        burst: 4,
        cl: 16,
        cwl: 12,
        t_rcd: 16,  // 13.32 ns
        t_rp: 16,   // 13.32 ns
        t_ras: 39,  // 32 ns
        t_rrd_s: 4, // max(4 nCK, 3.3 ns), pages of 1 KB
        t_rrd_l: 6, // max(4 nCK, 4.9 ns), pages of 1 KB
        t_faw: 26,  // max(20 nCK, 21 ns), pages of 1 KB
        t_ccd_s: 4,
        t_ccd_l: 6,    // max(5 nCK, 5 ns)
        t_wtr_s: 3,    // max(2 nCK, 2.5 ns)
        t_wtr_l: 9,    // max(4 nCK, 7.5 ns)
        t_wr: 18,      // 15 ns
        t_rtp: 9,      // max(4 nCK, 7.5 ns)
        t_refi: 9_363, // 7.8 us
        t_rfc: 421,    // 350 ns
        turnaround: 2,
    };

    /// Checks that every parameter is possible, and that refresh leaves time for something else.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        const MOST: u64 = 1 << 20;
        let parameters = [
            ("burst", self.burst),
            ("CL", self.cl),
            ("CWL", self.cwl),
            ("tRCD", self.t_rcd),
            ("tRP", self.t_rp),
            ("tRAS", self.t_ras),
            ("tRRD_S", self.t_rrd_s),
            ("tRRD_L", self.t_rrd_l),
            ("tFAW", self.t_faw),
            ("tCCD_S", self.t_ccd_s),
            ("tCCD_L", self.t_ccd_l),
            ("tWTR_S", self.t_wtr_s),
            ("tWTR_L", self.t_wtr_l),
            ("tWR", self.t_wr),
            ("tRTP", self.t_rtp),
            ("tRFC", self.t_rfc),
        ];
        for (name, value) in parameters {
            within(name, value, 1, MOST)?;
        }
        within("turnaround", self.turnaround, 0, MOST)?;
        within("tRRD_L", self.t_rrd_l, self.t_rrd_s, MOST)?;
        within("tCCD_L", self.t_ccd_l, self.t_ccd_s, MOST)?;
        within("tWTR_L", self.t_wtr_l, self.t_wtr_s, MOST)?;
        let write = self.t_rcd + self.cwl + self.burst + self.t_wr;
        let read = self.t_rcd + self.cl + self.burst;
        let row = self.t_ras.max(write).max(read) + self.t_rp;
        within("tREFI", self.t_refi, 2 * (self.t_rfc + row), MOST)
    }
}
