//! The client's candidates: parsed from `trickle` requests, and kept until they can be used.

use std::time::Duration;

use portunus_rtc::CandidateText;
use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::{ApiError, Purse, Share};

/// The most candidates of one request, and the most early candidates that are kept. More are
/// ignored.
const MAX_CANDIDATES: usize = 100;

/// The longest candidate line that is read, in bytes.
const MAX_LENGTH: usize = 1_024;

/// A candidate of the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// The mid of its m-line, if given.
    mid: Option<String>,
    /// The index of its m-line, if given.
    index: Option<u64>,
    /// The text after `a=`. Empty means the end of candidates.
    pub(crate) text: String,
}

impl Candidate {
    /// Returns its size in bytes.
    fn size(&self) -> usize {
        let mid = self.mid.as_ref().map_or(0, String::len);
        size_of::<(Instant, Self, Share)>().saturating_add(mid + self.text.len())
    }

    /// Whether it is for the shared transport, which is that of the first m-line in use. `lines`
    /// are the mids of all m-lines, and whether each is in use. A mid takes precedence over the
    /// index, unless it is unknown: a client whose offer had no mids may use its own.
    pub(crate) fn is_for_bundle(&self, lines: &[(&str, bool)]) -> bool {
        let first = lines.iter().position(|(_, in_use)| *in_use).unwrap_or(0);
        let is_named = |(mid, _): &(&str, bool)| self.mid.as_deref() == Some(*mid);
        if lines.iter().any(is_named) {
            return lines.get(first).is_some_and(is_named);
        }
        self.index.is_none_or(|index| index == first as u64)
    }
}

/// Parses the candidates of a `trickle` request. Faults of a single candidate are errors; those in
/// a list are skipped.
pub(crate) fn read(request: &Map<String, Value>) -> Result<Vec<Candidate>, ApiError> {
    match (request.get("candidate"), request.get("candidates")) {
        (None, None) => Err(missing("Missing mandatory element (candidate|candidates)")),
        (Some(_), Some(_)) => Err(ApiError::InvalidJson(
            "Can't have both candidate and candidates".to_owned(),
        )),
        (Some(candidate), None) => Ok(read_one(candidate)?.into_iter().collect()),
        (None, Some(Value::Array(candidates))) => Ok(candidates
            .iter()
            .take(MAX_CANDIDATES)
            .filter_map(|candidate| read_one(candidate).ok().flatten())
            .collect()),
        (None, Some(_)) => Err(wrong_type("candidates is not an array")),
    }
}

/// Returns `None` at the end of candidates.
fn read_one(candidate: &Value) -> Result<Option<Candidate>, ApiError> {
    let Value::Object(members) = candidate else {
        return Ok(None);
    };
    if members.contains_key("completed") {
        return Ok(None);
    }
    // Browsers write null for an unknown value.
    let member = |name| members.get(name).filter(|value: &&Value| !value.is_null());
    let mid = match member("sdpMid") {
        None => None,
        Some(Value::String(mid)) => Some(mid.clone()),
        Some(_) => {
            return Err(wrong_type(
                "Trickle error: invalid element type (sdpMid should be a string)",
            ));
        }
    };
    let index = match member("sdpMLineIndex").map(Value::as_u64) {
        None => None,
        Some(Some(index)) => Some(index),
        Some(None) => {
            return Err(wrong_type(
                "Trickle error: invalid element type (sdpMLineIndex should be a positive integer)",
            ));
        }
    };
    // Browsers leave out both at the end of candidates.
    let is_end = members.get("candidate").and_then(Value::as_str) == Some("");
    if mid.is_none() && index.is_none() && !is_end {
        return Err(missing(
            "Trickle error: missing mandatory element (sdpMid or sdpMLineIndex)",
        ));
    }
    match members.get("candidate") {
        None => Err(missing(
            "Trickle error: missing mandatory element (candidate)",
        )),
        Some(Value::String(text)) if text.len() <= MAX_LENGTH => Ok(Some(Candidate {
            mid,
            index,
            text: match CandidateText::read(text) {
                Some(CandidateText::Candidate(value)) => format!("candidate:{value}"),
                Some(CandidateText::End) => String::new(),
                None => text.clone(),
            },
        })),
        Some(_) => Err(wrong_type(
            "Trickle error: invalid element type (candidate should be a string)",
        )),
    }
}

fn missing(text: &str) -> ApiError {
    ApiError::MissingElement(text.to_owned())
}

fn wrong_type(text: &str) -> ApiError {
    ApiError::InvalidElement(text.to_owned())
}

/// Candidates that came before the end of the negotiation.
#[derive(Debug, Default)]
pub(crate) struct EarlyCandidates {
    waiting: Vec<(Instant, Candidate, Share)>,
}

impl EarlyCandidates {
    /// Keeps the candidates that fit, and that the client can pay for.
    pub(crate) fn keep(&mut self, candidates: Vec<Candidate>, purse: &Purse) {
        let room = MAX_CANDIDATES.saturating_sub(self.waiting.len());
        let now = Instant::now();
        let paid = candidates.into_iter().take(room).map_while(|candidate| {
            let share = purse.take(candidate.size()).ok()?;
            Some((now, candidate, share))
        });
        self.waiting.extend(paid);
    }

    pub(crate) fn count(&self) -> usize {
        self.waiting.len()
    }

    /// Takes all candidates, and returns those that are not older than `limit`.
    pub(crate) fn take(&mut self, limit: Duration) -> Vec<Candidate> {
        let waiting = std::mem::take(&mut self.waiting);
        let fresh = waiting
            .into_iter()
            .filter(|(came, ..)| came.elapsed() <= limit);
        fresh.map(|(_, candidate, _)| candidate).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_are_for_the_first_line_in_use_by_its_mid_or_else_by_its_place() {
        let second = [("a", false), ("v", true), ("d", true)].as_slice();
        let (none, made_up) = (
            [("v", false)].as_slice(),
            [("0", true), ("1", true)].as_slice(),
        );
        for (mid, index, lines, is_for) in [
            (Some("v"), Some(0), second, true),
            (Some("a"), Some(1), second, false),
            (Some("d"), Some(1), second, false),
            (None, Some(1), second, true),
            (None, Some(0), second, false),
            (None, None, second, true),
            (Some("v"), Some(1), none, true),
            (None, Some(0), none, true),
            (None, Some(1), none, false),
            (Some("audio"), Some(0), made_up, true),
            (Some("video"), Some(1), made_up, false),
            (Some(""), Some(0), made_up, true),
            (Some("audio"), None, made_up, true),
            (None, Some(0), [].as_slice(), true),
        ] {
            let candidate = Candidate {
                mid: mid.map(str::to_owned),
                index,
                text: String::new(),
            };
            assert_eq!(candidate.is_for_bundle(lines), is_for, "{candidate:?}");
        }
    }
}
