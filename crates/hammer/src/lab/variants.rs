//! Several scenarios in one run: they are separated by `and`, and `--sizes` may have several
//! patterns of packet sizes.

/// The separator of scenarios.
const AND: &str = "and";

/// The option that may have several comma-separated values.
const SIZES: &str = "--sizes";

/// The command line of a scenario, and its name within the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Variant {
    pub(super) words: Vec<String>,
    /// A number. `None` for a single one.
    pub(super) name: Option<String>,
}

/// Splits the words of a command line into scenarios, in order. The scenario's own parser checks
/// them.
pub(super) fn variants(words: &[String]) -> Vec<Variant> {
    let scenarios = words.split(|word| word == AND);
    let mut variants: Vec<Variant> = scenarios.flat_map(by_sizes).collect();
    if variants.len() > 1 {
        for (n, variant) in (1..).zip(&mut variants) {
            variant.name = Some(format!("{n}"));
        }
    }
    variants
}

/// Returns one variant for each of the sizes.
fn by_sizes(words: &[String]) -> Vec<Variant> {
    let variant = |words: Vec<String>| Variant { words, name: None };
    let Some((at, values)) = several(words) else {
        return vec![variant(words.to_vec())];
    };
    let of = |value: &str| {
        let mut words = words.to_vec();
        if let Some(word) = words.get_mut(at) {
            *word = match word.starts_with(SIZES) {
                true => format!("{SIZES}={value}"),
                false => value.to_owned(),
            };
        }
        variant(words)
    };
    values.split(',').map(of).collect()
}

/// Returns the index of the word with several values, and these.
fn several(words: &[String]) -> Option<(usize, &str)> {
    let option = words.iter().position(|word| word.starts_with(SIZES))?;
    let (at, values) = match words.get(option)?.strip_prefix(SIZES)? {
        "" => (option + 1, words.get(option + 1)?.as_str()),
        joined => (option, joined.strip_prefix('=')?),
    };
    values.contains(',').then_some((at, values))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(line: &str) -> Vec<(String, Option<String>)> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let variants = variants(&words).into_iter();
        variants.map(|v| (v.words.join(" "), v.name)).collect()
    }

    #[test]
    fn each_value_is_a_scenario_of_its_own() {
        for line in [
            "streaming",
            "streaming --sizes varied --fps 5",
            "streaming --sizes",
        ] {
            assert_eq!(lines(line), [(line.to_owned(), None)]);
        }
        let named = |line: &str, name: &str| (line.to_owned(), Some(name.to_owned()));
        assert_eq!(
            lines("streaming --sizes equal,almost-equal --fps 5"),
            [
                named("streaming --sizes equal --fps 5", "1"),
                named("streaming --sizes almost-equal --fps 5", "2"),
            ]
        );
        assert_eq!(
            lines("streaming --sizes=equal,x and star"),
            [
                named("streaming --sizes=equal", "1"),
                named("streaming --sizes=x", "2"),
                named("star", "3"),
            ]
        );
    }
}
