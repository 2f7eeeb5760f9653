//! What an instruction of x86 computes, by its name.

use iced_x86::{EncodingKind, Instruction as Decoded, Register};

use crate::trace::record::Operation;

/// The class of an instruction. One that is not listed here is simple.
#[must_use]
pub fn operation(decoded: &Decoded) -> Operation {
    let name = format!("{:?}", decoded.mnemonic()).to_ascii_lowercase();
    // VMULSD is MULSD with three operands.
    let name = match decoded.encoding() {
        EncodingKind::Legacy => &name,
        _ => name.strip_prefix('v').unwrap_or(&name),
    };
    if has_vector(decoded) {
        of_vectors(name)
    } else if name.starts_with('f') {
        of_x87(name)
    } else {
        of_integers(name)
    }
}

fn has_vector(decoded: &Decoded) -> bool {
    let is_vector = |register: Register| register.is_vector_register() || register.is_mm();
    (0..decoded.op_count()).any(|operand| is_vector(decoded.op_register(operand)))
}

fn of_integers(name: &str) -> Operation {
    match name {
        "mul" | "imul" | "mulx" | "crc32" => Operation::IntegerMultiply,
        "div" | "idiv" => Operation::IntegerDivide,
        _ => Operation::Simple,
    }
}

fn of_vectors(name: &str) -> Operation {
    let products = ["pmul", "pmadd", "pdpb", "pdpw", "pclmul", "aes", "sha1", "sha256", "gf2p8"];
    if products.iter().any(|product| name.starts_with(product)) {
        return Operation::IntegerMultiply;
    }
    if name.starts_with("cvt") {
        return Operation::FloatAdd;
    }
    // Single, double or half, one or all of a vector's.
    let kinds = ["ss", "sd", "ps", "pd", "sh", "ph"];
    let Some(stem) = kinds.iter().find_map(|kind| name.strip_suffix(kind)) else {
        return Operation::Simple;
    };
    match stem.trim_end_matches(|letter: char| letter.is_ascii_digit()) {
        "add" | "sub" | "addsub" | "hadd" | "hsub" | "min" | "max" | "cmp" | "comi" | "ucomi"
        | "round" | "rndscale" | "range" | "reduce" | "scalef" | "getexp" | "getmant" => {
            Operation::FloatAdd
        }
        "mul" | "dp" | "rcp" | "rsqrt" | "fmadd" | "fmsub" | "fnmadd" | "fnmsub" | "fmaddsub"
        | "fmsubadd" => Operation::FloatMultiply,
        "div" => Operation::FloatDivide,
        "sqrt" => Operation::FloatRoot,
        _ => Operation::Simple,
    }
}

fn of_x87(name: &str) -> Operation {
    let begins = |stems: &[&str]| stems.iter().any(|stem| name.starts_with(stem));
    if begins(&["fsqrt", "fsin", "fcos", "fptan", "fpatan", "f2xm1", "fyl2x"]) {
        Operation::FloatRoot
    } else if begins(&["fdiv", "fidiv", "fprem"]) {
        Operation::FloatDivide
    } else if begins(&["fmul", "fimul"]) {
        Operation::FloatMultiply
    } else if begins(&["fadd", "fiadd", "fsub", "fisub", "fcom", "ficom", "fucom", "ftst"])
        || begins(&["fild", "fist", "frndint", "fscale"])
    {
        Operation::FloatAdd
    } else {
        Operation::Simple
    }
}

#[cfg(test)]
mod tests {
    use iced_x86::{Decoder, DecoderOptions};

    use super::*;

    fn of(code: &[u8]) -> Operation {
        operation(&Decoder::new(64, code, DecoderOptions::NONE).decode())
    }

    #[test]
    fn integers() {
        // add rax, rbx; imul rax, rbx; mul rcx; div rcx; idiv ecx; popcnt eax, eax.
        assert_eq!(of(&[0x48, 0x01, 0xd8]), Operation::Simple);
        assert_eq!(of(&[0x48, 0x0f, 0xaf, 0xc3]), Operation::IntegerMultiply);
        assert_eq!(of(&[0x48, 0xf7, 0xe1]), Operation::IntegerMultiply);
        assert_eq!(of(&[0x48, 0xf7, 0xf1]), Operation::IntegerDivide);
        assert_eq!(of(&[0xf7, 0xf9]), Operation::IntegerDivide);
        assert_eq!(of(&[0xf3, 0x0f, 0xb8, 0xc0]), Operation::Simple);
        // pmuludq xmm0, xmm1; paddd xmm1, xmm2; aesenc xmm0, xmm1; crc32 eax, cl.
        assert_eq!(of(&[0x66, 0x0f, 0xf4, 0xc1]), Operation::IntegerMultiply);
        assert_eq!(of(&[0x66, 0x0f, 0xfe, 0xca]), Operation::Simple);
        assert_eq!(of(&[0x66, 0x0f, 0x38, 0xdc, 0xc1]), Operation::IntegerMultiply);
        assert_eq!(of(&[0xf2, 0x0f, 0x38, 0xf0, 0xc1]), Operation::IntegerMultiply);
    }

    #[test]
    fn floating_point_numbers() {
        // addsd, subps, comiss, cvtsi2sd, minpd of xmm0 and xmm1 (eax).
        assert_eq!(of(&[0xf2, 0x0f, 0x58, 0xc1]), Operation::FloatAdd);
        assert_eq!(of(&[0x0f, 0x5c, 0xc1]), Operation::FloatAdd);
        assert_eq!(of(&[0x0f, 0x2f, 0xc1]), Operation::FloatAdd);
        assert_eq!(of(&[0xf2, 0x0f, 0x2a, 0xc0]), Operation::FloatAdd);
        assert_eq!(of(&[0x66, 0x0f, 0x5d, 0xc1]), Operation::FloatAdd);
        // mulsd; vmulpd ymm0, ymm1, ymm2; vfmadd231sd xmm0, xmm1, xmm2; rsqrtss.
        assert_eq!(of(&[0xf2, 0x0f, 0x59, 0xc1]), Operation::FloatMultiply);
        assert_eq!(of(&[0xc5, 0xf5, 0x59, 0xc2]), Operation::FloatMultiply);
        assert_eq!(of(&[0xc4, 0xe2, 0xf1, 0xb9, 0xc2]), Operation::FloatMultiply);
        assert_eq!(of(&[0xf3, 0x0f, 0x52, 0xc1]), Operation::FloatMultiply);
        // divsd, sqrtsd.
        assert_eq!(of(&[0xf2, 0x0f, 0x5e, 0xc1]), Operation::FloatDivide);
        assert_eq!(of(&[0xf2, 0x0f, 0x51, 0xc1]), Operation::FloatRoot);
        // movsd xmm0, xmm1; andps; unpcklps; shufps.
        for code in [&[0xf2, 0x0f, 0x10, 0xc1][..], &[0x0f, 0x54, 0xc1], &[0x0f, 0x14, 0xc1]] {
            assert_eq!(of(code), Operation::Simple, "{code:x?}");
        }
        assert_eq!(of(&[0x0f, 0xc6, 0xc1, 0]), Operation::Simple);
        // CMPSD of vectors compares numbers, the one of strings copies nothing to the adder.
        assert_eq!(of(&[0xf2, 0x0f, 0xc2, 0xc1, 0]), Operation::FloatAdd);
        assert_eq!(of(&[0xa7]), Operation::Simple);
    }

    #[test]
    fn x87() {
        // fadd st, st(1); fmul; fdiv; fsqrt; fsin; fild dword [rax]; fld st(1); fxch; fcmovb.
        assert_eq!(of(&[0xd8, 0xc1]), Operation::FloatAdd);
        assert_eq!(of(&[0xd8, 0xc9]), Operation::FloatMultiply);
        assert_eq!(of(&[0xd8, 0xf1]), Operation::FloatDivide);
        assert_eq!(of(&[0xd9, 0xfa]), Operation::FloatRoot);
        assert_eq!(of(&[0xd9, 0xfe]), Operation::FloatRoot);
        assert_eq!(of(&[0xdb, 0x00]), Operation::FloatAdd);
        assert_eq!(of(&[0xd9, 0xc1]), Operation::Simple);
        assert_eq!(of(&[0xd9, 0xc9]), Operation::Simple);
        assert_eq!(of(&[0xda, 0xc1]), Operation::Simple);
        // No code.
        assert_eq!(of(&[]), Operation::Simple);
    }
}
