//! What came of a strike.

/// What came of a strike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The unit found a violation before it released a wrong byte.
    Detected,
    /// The unit released a wrong byte, and the next check found that.
    AtNextCheck,
    /// The unit released a wrong byte, and never knew. Or the attacker, who only looked, saw
    /// something.
    Undetected,
    /// The unit put right what was changed, and said so.
    Corrected,
    /// Memory was changed, but nothing that is read came out different. Or looking showed nothing.
    Harmless,
    /// There was nothing to change.
    Void,
}

/// What the unit gave away since the strike.
#[derive(Debug, Default)]
pub(super) struct Released {
    /// Whether the program got a wrong byte, or the attacker a secret.
    pub wrong: bool,
}

/// What to call what came of a strike that changed something.
pub(super) fn verdict(
    found: bool,
    released: &Released,
    checks_at_intervals: bool,
    corrected: bool,
) -> Verdict {
    match (found, released.wrong) {
        (true, false) => Verdict::Detected,
        (true, true) if checks_at_intervals => Verdict::AtNextCheck,
        (_, true) => Verdict::Undetected,
        (false, false) if corrected => Verdict::Corrected,
        (false, false) => Verdict::Harmless,
    }
}
