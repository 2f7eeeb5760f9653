//! Assembly for the machine.
//!
//! A line is `label: operation operand, operand ; comment`, each part optional. Registers are `r0`
//! to `r15`; immediates are decimal or `0x` numbers, signed; a label is the number of its
//! instruction.

use std::collections::HashMap;

use super::Words;
use super::instruction::{Form, Instruction, Operation, REGISTERS};

/// What is wrong with a program's text, and in which line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct AssemblyError {
    /// Counted from 1.
    pub line: usize,
    /// What is wrong.
    pub what: Mistake,
}

/// A mistake in a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Mistake {
    /// No such operation.
    #[error("there is no operation {0}")]
    Operation(String),
    /// Too few operands, or too many.
    #[error("{name} takes {takes} operands, and here are {given}")]
    Operands {
        /// The operation.
        name: &'static str,
        /// How many it takes.
        takes: usize,
        /// How many there are.
        given: usize,
    },
    /// Not a register.
    #[error("{0} is no register; these are r0 to r15")]
    Register(String),
    /// Neither a number of 32 bits nor a label.
    #[error("{0} is neither a label nor a number of 32 bits")]
    Immediate(String),
    /// The label stands twice.
    #[error("the label {0} stands twice")]
    Label(String),
}

/// A line that has an instruction.
struct Line<'a> {
    number: usize,
    name: &'a str,
    operands: Vec<&'a str>,
}

/// The program of a text.
///
/// # Errors
/// If a line makes no sense.
pub fn assemble(text: &str) -> Result<Words, AssemblyError> {
    let (lines, labels) = split(text)?;
    let words = lines.iter().map(|line| {
        let instruction = instruction(line, &labels);
        instruction
            .map(Instruction::encode)
            .map_err(|what| AssemblyError { line: line.number, what })
    });
    words.collect()
}

/// The lines with instructions, and which instruction each label stands before.
fn split(text: &str) -> Result<(Vec<Line<'_>>, HashMap<&str, i32>), AssemblyError> {
    let (mut lines, mut labels) = (Vec::new(), HashMap::new());
    for (number, line) in (1..).zip(text.lines()) {
        let mut rest = line.split(';').next().unwrap_or_default().trim();
        while let Some((label, after)) = rest.split_once(':') {
            let label = label.trim();
            if labels.insert(label, lines.len() as i32).is_some() {
                return Err(AssemblyError { line: number, what: Mistake::Label(label.to_owned()) });
            }
            rest = after.trim();
        }
        if rest.is_empty() {
            continue;
        }
        let (name, operands) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let operands = operands.split(',').map(str::trim).filter(|operand| !operand.is_empty());
        lines.push(Line { number, name, operands: operands.collect() });
    }
    Ok((lines, labels))
}

fn instruction(line: &Line<'_>, labels: &HashMap<&str, i32>) -> Result<Instruction, Mistake> {
    let operation = Operation::ALL.into_iter().find(|operation| operation.name() == line.name);
    let operation = operation.ok_or_else(|| Mistake::Operation(line.name.to_owned()))?;
    let (registers, takes_immediate) = match operation.form() {
        Form::Two => (2, false),
        Form::Three => (3, false),
        Form::OneImmediate => (1, true),
        Form::TwoImmediate => (2, true),
        Form::Immediate => (0, true),
    };
    let (takes, given) = (registers + usize::from(takes_immediate), line.operands.len());
    if given != takes {
        return Err(Mistake::Operands { name: operation.name(), takes, given });
    }
    let mut instruction = Instruction { operation, registers: [0; 3], immediate: 0 };
    for (to, operand) in instruction.registers.iter_mut().zip(&line.operands[..registers]) {
        *to = register(operand)?;
    }
    if takes_immediate {
        instruction.immediate = immediate(line.operands[registers], labels)?;
    }
    Ok(instruction)
}

fn register(text: &str) -> Result<u8, Mistake> {
    let number = text.strip_prefix('r').and_then(|number| number.parse().ok());
    number
        .filter(|number| usize::from(*number) < REGISTERS)
        .ok_or_else(|| Mistake::Register(text.to_owned()))
}

fn immediate(text: &str, labels: &HashMap<&str, i32>) -> Result<i32, Mistake> {
    if let Some(at) = labels.get(text) {
        return Ok(*at);
    }
    let number = match text.strip_prefix("0x") {
        Some(digits) => i32::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.map_err(|_| Mistake::Immediate(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_by_hand() {
        let text =
            "; nothing\nstart: set r3, -1\nend: loop: jeq r3, r1, start ; back\n\nhalt r1, r2";
        let words = assemble(text).expect("a program");
        assert_eq!(words, [0xffff_ffff_0000_0301, 0x0000_0000_0001_0310, 0x0000_0000_0002_0100]);
    }

    #[test]
    fn mistakes_are_told_with_their_line() {
        let mistake = |text: &str| assemble(text).expect_err(text);
        assert_eq!(mistake("\nfly r1").line, 2);
        assert_eq!(mistake("add r1, r2, r16").what, Mistake::Register("r16".into()));
        assert_eq!(mistake("jump nowhere").what, Mistake::Immediate("nowhere".into()));
        assert_eq!(mistake("set r1, 2147483648").what, Mistake::Immediate("2147483648".into()));
        assert_eq!(mistake("a: a: halt r0, r0").what, Mistake::Label("a".into()));
        let operands = Mistake::Operands { name: "halt", takes: 2, given: 1 };
        assert_eq!(mistake("halt r0").what, operands);
    }
}
