//! The forms in which peers write candidates.

/// A candidate text of a peer. Peers write candidates as in SDP, with or without `a=` and
/// `candidate:` before them, and with or without a line end after them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CandidateText<'a> {
    /// A candidate: the text after `candidate:`.
    Candidate(&'a str),
    /// The end of candidates.
    End,
}

impl<'a> CandidateText<'a> {
    /// Reads the first line of `text`. Returns `None` if it is neither a candidate nor their end.
    pub fn read(text: &'a str) -> Option<Self> {
        let line = text.trim().lines().next().unwrap_or_default();
        let line = strip_prefix(line, "a=").unwrap_or(line).trim();
        let value = strip_prefix(line, "candidate:").map(str::trim_start);
        if value.unwrap_or(line).is_empty() || line.eq_ignore_ascii_case("end-of-candidates") {
            return Some(CandidateText::End);
        }
        let is_typed = || line.split_whitespace().nth(6) == Some("typ");
        let bare = || is_typed().then_some(line);
        value.or_else(bare).map(CandidateText::Candidate)
    }
}

fn strip_prefix<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let (start, rest) = text.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}
