//! Telephone numbers of URIs: `tel:` URIs, and user parts that are written like them (RFC 3966, RFC
//! 3261 section 19.1.1).

use super::lex::unescape;

/// Characters between digits, which do not count (RFC 3966 section 3).
const SEPARATORS: [char; 4] = ['-', '.', '(', ')'];

/// The evidence that a text is a telephone number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Marked {
    /// The scheme `tel:`, or the parameter `user=phone`.
    Yes,
    /// Only the number itself: a `+`, or digits alone. Other text is the name of a user.
    No,
}

/// Returns the number of a `telephone-subscriber` without its parameters, such as `;tgrp=…` (RFC
/// 4904), `;rn=…` (RFC 4694) and
/// `;phone-context=…`, and without visual separators. Returns `None` if the text is no telephone
/// number.
pub(super) fn number(text: &str, marked: Marked) -> Option<String> {
    let (subscriber, has_params) = match text.split_once(';') {
        Some((subscriber, _)) => (subscriber, true),
        None => (text, false),
    };
    let subscriber = unescape(subscriber);
    let is_marked = marked == Marked::Yes || has_params || subscriber.starts_with('+');
    let mut number = String::with_capacity(subscriber.len());
    for (at, char) in subscriber.chars().enumerate() {
        match char {
            '+' if at == 0 => number.push(char),
            '0'..='9' | '*' | '#' => number.push(char),
            // Local numbers may have hexadecimal digits.
            'a'..='f' | 'A'..='F' if marked == Marked::Yes => number.push(char),
            _ if is_marked && SEPARATORS.contains(&char) => {}
            _ => return None,
        }
    }
    let is_number = !number.trim_start_matches('+').is_empty();
    is_number.then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_and_separators_are_no_part_of_a_number() {
        for (text, expected) in [
            ("771600", "771600"),
            ("771600;tgrp=g1;trunk-context=example.com", "771600"),
            ("+49-30-1600;npdi;rn=+49199", "+49301600"),
            ("+1(630)555.0100;phone-context=+1", "+16305550100"),
            ("77-16.00;phone-context=+4930", "771600"),
            ("*98%23;ext=1", "*98#"),
        ] {
            assert_eq!(
                number(text, Marked::No).as_deref(),
                Some(expected),
                "{text}"
            );
            assert_eq!(
                number(text, Marked::Yes).as_deref(),
                Some(expected),
                "{text}"
            );
        }
        assert_eq!(number("77-16.00", Marked::Yes).as_deref(), Some("771600"));
        assert_eq!(number("7a-16", Marked::Yes).as_deref(), Some("7a16"));
    }

    #[test]
    fn names_of_users_are_no_numbers() {
        for name in [
            "",
            "alice",
            "alice;day=tuesday",
            "+",
            "12-34",
            "7a16",
            "1+2",
            "desk-2",
            "%3b",
            "12%3B3",
            ";x",
        ] {
            assert_eq!(number(name, Marked::No), None, "{name}");
        }
        assert_eq!(number("alice;x=1", Marked::Yes), None);
        assert_eq!(number("-.", Marked::Yes), None);
    }
}
