//! Tokens of the timeline's events: three bits for the kind, the rest for its subject.

/// An event of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The second level has looked a core's flight up.
    LookUpL2 { core: u32, flight: u32 },
    /// The third level has.
    LookUpL3 { core: u32, flight: u32 },
    /// A line of the last level has come, by its number in blocks.
    LineCame { block: u64 },
    /// An entry of the write buffer may be free.
    WriteBufferRoom { counted: bool },
    /// A request of a trace of requests arrives.
    Request,
    /// The answer to one has come.
    RequestAnswered { slot: u32 },
    /// A prefetch of a line for a core's second level sets out.
    Prefetch { core: u32, line: u64 },
}

const KIND: u32 = 58;
const CORE: u32 = 32;
/// Of a prefetch, above its address.
const PREFETCHING_CORE: u32 = 48;

pub(crate) fn look_up_l2(core: u32, flight: u32) -> u64 {
    u64::from(core) << CORE | u64::from(flight)
}

pub(crate) fn look_up_l3(core: u32, flight: u32) -> u64 {
    1 << KIND | u64::from(core) << CORE | u64::from(flight)
}

pub(crate) fn line_came(block: u64) -> u64 {
    2 << KIND | block
}

/// `counted`: one of the entries whose end was not known beforehand.
pub(crate) fn write_buffer_room(counted: bool) -> u64 {
    3 << KIND | u64::from(counted)
}

pub(crate) fn request() -> u64 {
    4 << KIND
}

pub(crate) fn request_answered(slot: u32) -> u64 {
    5 << KIND | u64::from(slot)
}

pub(crate) fn prefetch(core: u32, line: u64) -> u64 {
    6 << KIND | u64::from(core) << PREFETCHING_CORE | line
}

/// What a token says. One that is not of this module is a request.
pub(crate) fn event(token: u64) -> Event {
    let low = token & ((1 << KIND) - 1);
    let (core, flight) = ((low >> CORE) as u32, low as u32);
    match token >> KIND {
        0 => Event::LookUpL2 { core, flight },
        1 => Event::LookUpL3 { core, flight },
        2 => Event::LineCame { block: low },
        3 => Event::WriteBufferRoom { counted: low != 0 },
        5 => Event::RequestAnswered { slot: flight },
        6 => Event::Prefetch {
            core: (low >> PREFETCHING_CORE) as u32,
            line: low & ((1 << PREFETCHING_CORE) - 1),
        },
        _ => Event::Request,
    }
}
