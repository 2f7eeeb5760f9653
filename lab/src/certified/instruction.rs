//! The machine's instructions: one word each (SPEC, "Certified execution").
//!
//! ```text
//! bits  0 ..  8    operation
//! bits  8 .. 16    register a
//! bits 16 .. 24    register b
//! bits 24 .. 32    register c
//! bits 32 .. 64    immediate, signed
//! ```
//!
//! What an operation does not use is zero, so that a word has one meaning or none.

/// Registers of the machine.
pub const REGISTERS: usize = 16;

/// Which fields an operation uses, in the order in which assembly writes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// a, b
    Two,
    /// a, b, c
    Three,
    /// a, immediate
    OneImmediate,
    /// a, b, immediate
    TwoImmediate,
    /// immediate
    Immediate,
}

/// An operation, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Ends the program: its result are b words from address a on.
    Halt,
    /// a = immediate
    Set,
    /// a = b + immediate
    Addi,
    /// a = b + c
    Add,
    /// a = b − c
    Sub,
    /// a = b · c, its low word
    Mul,
    /// a = b / c, unsigned
    Div,
    /// a = b mod c, unsigned
    Rem,
    /// a = b AND c
    And,
    /// a = b OR c
    Or,
    /// a = b XOR c
    Xor,
    /// a = b shifted left by c mod 64
    Shl,
    /// a = b shifted right by c mod 64
    Shr,
    /// a = the word at address b + immediate
    Load,
    /// the word at address b + immediate = a
    Store,
    /// Goes to instruction number immediate.
    Jump,
    /// The same if a = b.
    Jeq,
    /// The same if a ≠ b.
    Jne,
    /// The same if a < b, unsigned.
    Jlt,
    /// The same if a ≥ b, unsigned.
    Jge,
}

impl Operation {
    /// All of them; an operation's number is its place here.
    pub const ALL: [Operation; 20] = [
        Operation::Halt,
        Operation::Set,
        Operation::Addi,
        Operation::Add,
        Operation::Sub,
        Operation::Mul,
        Operation::Div,
        Operation::Rem,
        Operation::And,
        Operation::Or,
        Operation::Xor,
        Operation::Shl,
        Operation::Shr,
        Operation::Load,
        Operation::Store,
        Operation::Jump,
        Operation::Jeq,
        Operation::Jne,
        Operation::Jlt,
        Operation::Jge,
    ];

    /// How assembly calls it.
    pub fn name(self) -> &'static str {
        const NAMES: [&str; 20] = [
            "halt", "set", "addi", "add", "sub", "mul", "div", "rem", "and", "or", "xor", "shl",
            "shr", "load", "store", "jump", "jeq", "jne", "jlt", "jge",
        ];
        NAMES[self as usize]
    }

    /// Which fields it uses.
    pub fn form(self) -> Form {
        use Operation as O;
        match self {
            O::Halt => Form::Two,
            O::Set => Form::OneImmediate,
            O::Addi | O::Load | O::Store | O::Jeq | O::Jne | O::Jlt | O::Jge => Form::TwoImmediate,
            O::Jump => Form::Immediate,
            O::Add | O::Sub | O::Mul | O::Div | O::Rem => Form::Three,
            O::And | O::Or | O::Xor | O::Shl | O::Shr => Form::Three,
        }
    }
}

/// An instruction. Registers are below [`REGISTERS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    /// What to do.
    pub operation: Operation,
    /// Registers a, b and c.
    pub registers: [u8; 3],
    /// The immediate.
    pub immediate: i32,
}

impl Instruction {
    /// The instruction as a word.
    pub fn encode(self) -> u64 {
        let [a, b, c] = self.registers;
        let low = u32::from_le_bytes([self.operation as u8, a, b, c]);
        u64::from(self.immediate as u32) << 32 | u64::from(low)
    }

    /// The instruction that a word is, if it is one.
    pub fn decode(word: u64) -> Option<Instruction> {
        let [number, a, b, c, immediate @ ..] = word.to_le_bytes();
        let operation = *Operation::ALL.get(usize::from(number))?;
        let immediate = i32::from_le_bytes(immediate);
        let (used, takes_immediate) = match operation.form() {
            Form::Two => (2, false),
            Form::Three => (3, false),
            Form::OneImmediate => (1, true),
            Form::TwoImmediate => (2, true),
            Form::Immediate => (0, true),
        };
        let registers = [a, b, c];
        let exist = registers.iter().all(|register| usize::from(*register) < REGISTERS);
        let unused = registers[used..].iter().all(|register| *register == 0);
        let canonical = unused && (takes_immediate || immediate == 0);
        (exist && canonical).then_some(Instruction { operation, registers, immediate })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literal_words() {
        let store =
            Instruction { operation: Operation::Store, registers: [3, 15, 0], immediate: -2 };
        assert_eq!(store.encode(), 0xffff_fffe_000f_030e);
        assert_eq!(Instruction::decode(0xffff_fffe_000f_030e), Some(store));
        assert_eq!(Instruction::decode(0x14), None, "there is no operation 20");
        assert_eq!(Instruction::decode(0x0000_0001_0000_0003), None, "add takes no immediate");
        assert_eq!(Instruction::decode(0x0000_0000_0100_0001), None, "set takes one register");
        assert_eq!(Instruction::decode(0x1003), None, "there is no register 16");
    }

    #[test]
    fn numbers_are_places() {
        for (number, operation) in Operation::ALL.into_iter().enumerate() {
            assert_eq!(operation as usize, number);
        }
    }
}
