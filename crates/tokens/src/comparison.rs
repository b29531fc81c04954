//! Comparison of secrets.

/// Compares in a time that does not depend on how much of a guess is right.
pub fn equal_in_constant_time(known: &str, shown: &str) -> bool {
    let pairs = known.bytes().zip(shown.bytes());
    known.len() == shown.len() && pairs.fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}
