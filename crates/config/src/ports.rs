//! Ranges of ports.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A range of UDP ports, both ends included. As a text, `min-max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortRange {
    first: u16,
    last: u16,
}

impl Default for PortRange {
    fn default() -> Self {
        PortRange {
            first: 10_000,
            last: 60_000,
        }
    }
}

impl PortRange {
    /// Returns a range with these ends in any order. The first port is rounded up to an even one.
    pub fn new(one: u16, other: u16) -> Self {
        let (first, last) = (one.min(other), one.max(other));
        let first = first.saturating_add(first % 2).min(last);
        PortRange { first, last }
    }

    /// Reads `min-max`.
    pub fn parse(text: &str) -> Option<Self> {
        let (one, other) = text.split_once('-')?;
        let end = |text: &str| text.trim().parse().ok();
        Some(PortRange::new(end(one)?, end(other)?))
    }

    /// Returns the smallest port.
    pub const fn first(self) -> u16 {
        self.first
    }

    /// Returns the largest port.
    pub const fn last(self) -> u16 {
        self.last
    }
}

impl<'de> Deserialize<'de> for PortRange {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        const FORM: &str = "ports in quotes such as \"10000-60000\"";
        crate::text(from, FORM, |text| {
            PortRange::parse(text).ok_or_else(|| format!("expected {FORM}, got {text:?}"))
        })
    }
}

impl Serialize for PortRange {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl std::fmt::Display for PortRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_start_even_and_have_an_order() {
        let range = |text| PortRange::parse(text).map(|range| range.to_string());
        assert_eq!(range("10001-20000").as_deref(), Some("10002-20000"));
        assert_eq!(range("20000-10000").as_deref(), Some("10000-20000"));
        assert_eq!(range("5 - 5").as_deref(), Some("5-5"));
        assert_eq!(range("65535-65535").as_deref(), Some("65535-65535"));
        assert_eq!(range("1-70000"), None);
        assert_eq!(range("10000"), None);
    }
}
