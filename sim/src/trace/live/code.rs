//! What the machine code of an instruction tells: whether it branches, what it computes, and its
//! registers.

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction as Decoded, InstructionInfoFactory, Mnemonic,
    OpAccess, Register,
};

use super::operation::operation;
use crate::trace::record::{Operation, Registers};

/// How control leaves an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// To the next one.
    Next,
    /// To the next one, or elsewhere.
    Conditional,
    /// Elsewhere.
    Elsewhere,
}

/// What the code of an instruction tells.
#[derive(Clone, Copy, Debug)]
pub struct Description {
    /// How control leaves it.
    pub flow: Flow,
    /// What it computes.
    pub operation: Operation,
    /// What it reads and writes.
    pub registers: Registers,
}

/// Describes the instruction that `code` begins with. General registers are 1 to 16 (in the order
/// of their encoding: `rax` is 1, `r15` is 16), vectors 17 to 48, masks 49 to 56, x87 and MMX 57 to
/// 64, flags 65.
#[must_use]
pub fn describe(code: &[u8], factory: &mut InstructionInfoFactory) -> Description {
    let decoded = Decoder::new(64, code, DecoderOptions::NONE).decode();
    let mut registers = Registers::default();
    let used: Vec<_> = factory.info(&decoded).used_registers().to_vec();
    for used in used {
        let Some(number) = number(used.register()) else { continue };
        let (reads, writes) = directions(used.access());
        if reads {
            add(&mut registers.read, number);
        }
        if writes {
            add(&mut registers.written, number);
        }
    }
    if decoded.rflags_read() != 0 {
        add(&mut registers.read, FLAGS);
    }
    if decoded.rflags_modified() != 0 {
        add(&mut registers.written, FLAGS);
    }
    Description { flow: flow(&decoded), operation: operation(&decoded), registers }
}

const FLAGS: u8 = 65;

fn flow(decoded: &Decoded) -> Flow {
    match decoded.flow_control() {
        // The kernel returns to the next instruction.
        _ if matches!(decoded.mnemonic(), Mnemonic::Syscall | Mnemonic::Sysenter) => Flow::Next,
        FlowControl::ConditionalBranch => Flow::Conditional,
        FlowControl::UnconditionalBranch
        | FlowControl::IndirectBranch
        | FlowControl::Call
        | FlowControl::IndirectCall
        | FlowControl::Return => Flow::Elsewhere,
        FlowControl::Next
        | FlowControl::Interrupt
        | FlowControl::XbeginXabortXend
        | FlowControl::Exception => Flow::Next,
    }
}

/// Instruction pointer and segments have no number: no instruction waits for them.
fn number(register: Register) -> Option<u8> {
    let full = register.full_register();
    let first = if full.is_gpr64() {
        1
    } else if full.is_zmm() {
        17
    } else if full.is_k() {
        49
    } else if full.is_st() || full.is_mm() {
        57
    } else {
        return None;
    };
    u8::try_from(full.number()).ok().map(|number| first + number)
}

fn directions(access: OpAccess) -> (bool, bool) {
    match access {
        OpAccess::None | OpAccess::NoMemAccess => (false, false),
        OpAccess::Read | OpAccess::CondRead => (true, false),
        OpAccess::Write => (false, true),
        // What may not be written keeps its old value, so it is waited for as well.
        OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite => (true, true),
    }
}

/// Adds a register where there is room; the few instructions with more lose the last ones.
fn add(list: &mut [u8], number: u8) {
    if !list.contains(&number)
        && let Some(free) = list.iter_mut().find(|register| **register == 0)
    {
        *free = number;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(code: &[u8]) -> (Flow, Vec<u8>, Vec<u8>) {
        let Description { flow, registers, .. } =
            describe(code, &mut InstructionInfoFactory::new());
        let list = |all: &[u8]| {
            let mut list: Vec<u8> = all.iter().copied().filter(|r| *r > 0).collect();
            list.sort_unstable();
            list
        };
        (flow, list(&registers.read), list(&registers.written))
    }

    #[test]
    fn registers_and_flow_are_those_of_the_manual() {
        // add rax, rbx: rax is 1, rbx is 4.
        assert_eq!(of(&[0x48, 0x01, 0xd8]), (Flow::Next, vec![1, 4], vec![1, FLAGS]));
        // mov ecx, [rsp+r8*4]: rsp is 5, r8 is 9, rcx is 2.
        assert_eq!(of(&[0x42, 0x8b, 0x0c, 0x84]), (Flow::Next, vec![5, 9], vec![2]));
        // jne +2
        assert_eq!(of(&[0x75, 0x02]), (Flow::Conditional, vec![FLAGS], vec![]));
        // ret
        assert_eq!(of(&[0xc3]), (Flow::Elsewhere, vec![5], vec![5]));
        // paddd xmm1, xmm2
        assert_eq!(of(&[0x66, 0x0f, 0xfe, 0xca]), (Flow::Next, vec![18, 19], vec![18]));
        // syscall goes on with the next instruction.
        assert_eq!(of(&[0x0f, 0x05]).0, Flow::Next);
    }

    #[test]
    fn bytes_that_are_no_code_are_an_instruction_without_registers() {
        assert_eq!(of(&[]), (Flow::Next, vec![], vec![]));
        assert_eq!(of(&[0x06]), (Flow::Next, vec![], vec![]));
    }
}
