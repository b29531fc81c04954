//! Suggestions for unknown names.

/// Returns the most similar known name, if one is similar.
pub(crate) fn most_similar(name: &str, known: &[&'static str]) -> Option<&'static str> {
    let distance = |known: &'static str| (strsim::damerau_levenshtein(name, known), known);
    let (distance, similar) = known.iter().map(|known| distance(known)).min()?;
    let contained = similar.contains(name) || name.contains(similar);
    (contained || distance <= 1 + name.len() / 4).then_some(similar)
}
