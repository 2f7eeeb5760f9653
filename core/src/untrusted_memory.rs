//! Memory outside the trusted area, by lines: of the pager's metadata, of a processor's blocks.

use crate::port::FixedBytes;

/// Storage for lines that an attacker may read and change at any time.
///
/// It grows by itself: any line that a protocol may have can be written. A protocol never reads a
/// line that it has not written, so what such a line reads as does not matter. An adversary is a
/// decorator around it, or `HostileMemory`.
pub trait UntrustedMemory<At: Copy, Line: FixedBytes> {
    /// A copy of one line. The copy is private: an attacker cannot change it after this call.
    fn read(&mut self, at: At) -> Line;

    /// Stores one line.
    fn write(&mut self, at: At, line: &Line);

    /// Stores some bytes of a line from byte `from` on, and leaves the others as they are.
    fn write_part(&mut self, at: At, from: usize, bytes: &[u8]) {
        let mut line = self.read(at);
        line.as_mut()[from..from + bytes.len()].copy_from_slice(bytes);
        self.write(at, &line);
    }
}
