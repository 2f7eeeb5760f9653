//! Process ids on the command line.

/// A process id: 1 to 2147483647.
///
/// # Errors
/// The text is none.
pub fn parse(text: &str) -> Result<u32, String> {
    let pid = text.parse::<u32>().ok().filter(|&pid| i32::try_from(pid).is_ok_and(|pid| pid > 0));
    pid.ok_or_else(|| "a process id is a number from 1 to 2147483647".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_process_id_is_told_what_one_is() {
        assert_eq!((parse("1"), parse("2147483647")), (Ok(1), Ok(i32::MAX as u32)));
        for text in ["", "0", "-1", "x", "1 ", "2147483648", "99999999999"] {
            assert!(parse(text).is_err_and(|why| why.starts_with("a process id is")), "{text}");
        }
    }
}
