//! What is said of arguments that make no command, and of help that is asked for.

use std::ffi::OsString;
use std::io::{self, Write};

use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::args::Cli;
use crate::{exit_codes, output};

/// Prints it. The exit code: help and version end with 0, what is wrong with the arguments is ours
/// to answer for.
pub fn refused(refusal: clap::Error) -> u8 {
    if refusal.use_stderr() {
        let _ = clearer(refusal).print();
        return exit_codes::OWN_ERROR;
    }
    match refusal.print().and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            output::stderr(&format!("casemate: cannot write to standard output: {error}\n"));
            exit_codes::NO
        }
        _ => 0,
    }
}

/// The same, where the parser says too little or what is of no use.
fn clearer(mut refusal: clap::Error) -> clap::Error {
    match refusal.kind() {
        ErrorKind::UnknownArgument if is_of_a_number(&refusal) => {
            // The tip makes a program's argument of it.
            refusal.remove(ContextKind::Suggested);
            refusal
        }
        ErrorKind::InvalidUtf8 => no_text().unwrap_or(refusal),
        _ => refusal,
    }
}

/// Whether it is about a number below zero.
fn is_of_a_number(refusal: &clap::Error) -> bool {
    let Some(ContextValue::String(word)) = refusal.get(ContextKind::InvalidArg) else {
        return false;
    };
    word.strip_prefix('-').is_some_and(|number| number.parse::<f64>().is_ok())
}

/// The error that names the argument which has to be text and is none: the one with which alone
/// the parser still says so. (Names of files need not be text.)
fn no_text() -> Option<clap::Error> {
    let words: Vec<OsString> = std::env::args_os().collect();
    let text = |word: &OsString| OsString::from(word.to_string_lossy().into_owned());
    let texts: Vec<OsString> = words.iter().map(text).collect();
    let is_it = |number: &usize| {
        let mut texts = texts.clone();
        texts[*number].clone_from(&words[*number]);
        Cli::try_parse_from(texts).is_err_and(|error| error.kind() == ErrorKind::InvalidUtf8)
    };
    let mut numbers = (1..words.len()).filter(|&number| words[number].to_str().is_none());
    let number = numbers.find(is_it)?;
    let sentence = format!("argument {number}, {:?}, has to be text in UTF-8\n", words[number]);
    Some(clap::Error::raw(ErrorKind::InvalidUtf8, sentence))
}
