//! serde's errors in words for the authors of a configuration.

const IP_ADDRESS: &str = "an IP address in quotes";
const SOCKET_ADDRESS: &str = "an address with a port such as \"127.0.0.1:9100\"";

/// Returns `message` in plain words. `written` is the value as it is written in the file. Messages
/// that are not serde's own stay as they are.
pub(crate) fn plain(message: &str, written: &str) -> String {
    mismatch(message)
        .or_else(|| unknown_variant(message))
        .or_else(|| unknown_field(message))
        .or_else(|| missing(message))
        .or_else(|| other(message, written))
        .unwrap_or_else(|| message.to_owned())
}

/// Translates ``invalid type: string "x", expected u16``.
fn mismatch(message: &str) -> Option<String> {
    let kinds = ["invalid type: ", "invalid value: ", "invalid length: "];
    let mut kinds = kinds.iter();
    let rest = kinds.find_map(|kind| message.strip_prefix(kind))?;
    let (got, wanted) = rest.rsplit_once(", expected ")?;
    let number = message.starts_with("invalid value: integer");
    Some(format!(
        "expected {}, got {}",
        wanted_in_words(wanted, number),
        got_in_words(got)
    ))
}

fn wanted_in_words(wanted: &str, number: bool) -> String {
    let largest = match wanted {
        "u8" => u8::MAX.into(),
        "u16" => u16::MAX.into(),
        "u32" => u32::MAX.into(),
        // TOML has no larger ones.
        "u64" | "usize" => i64::MAX,
        _ => 0,
    };
    match wanted {
        "u8" | "u16" | "u32" | "u64" | "usize" if number => {
            format!("a whole number from 0 to {largest}")
        }
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number".to_owned(),
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a string" => "text in quotes".to_owned(),
        "path string" => "a path in quotes".to_owned(),
        "a sequence" => "a list in [ ]".to_owned(),
        "a map" => "a section".to_owned(),
        "IP address" => IP_ADDRESS.to_owned(),
        "socket address" => SOCKET_ADDRESS.to_owned(),
        other if other.starts_with("struct ") => "keys in { }".to_owned(),
        other => other.to_owned(),
    }
}

/// Returns the value in words. Omits an obvious type.
fn got_in_words(got: &str) -> String {
    if let Some(text) = got.strip_prefix("string ") {
        return text.to_owned();
    }
    match got {
        "map" => return "a section".to_owned(),
        "sequence" => return "a list".to_owned(),
        _ => {}
    }
    let value = got.split_once('`').map(|(_, value)| value);
    value
        .map_or(got, |value| value.trim_end_matches('`'))
        .to_owned()
}

/// Translates ``unknown variant `x`, expected `a` or `b` ``.
fn unknown_variant(message: &str) -> Option<String> {
    let rest = message.strip_prefix("unknown variant `")?;
    let (got, wanted) = rest.rsplit_once("`, expected ")?;
    Some(format!(
        "expected {}, got {got:?}",
        wanted.replace('`', "\"")
    ))
}

/// Translates ``unknown field `x`, expected `a` or `b` ``.
fn unknown_field(message: &str) -> Option<String> {
    let rest = message.strip_prefix("unknown field `")?;
    let (got, wanted) = rest.rsplit_once("`, expected ")?;
    let wanted = wanted.trim_start_matches("one of ").replace('`', "");
    Some(format!("unknown key {got:?}; there are {wanted}"))
}

/// Translates ``missing field `x` ``.
fn missing(message: &str) -> Option<String> {
    let name = message.strip_prefix("missing field `")?.strip_suffix('`')?;
    Some(format!("{name} is missing"))
}

fn other(message: &str, written: &str) -> Option<String> {
    let wanted = match message {
        "invalid IP address syntax" => IP_ADDRESS,
        "invalid socket address syntax" => SOCKET_ADDRESS,
        "wanted string or table" => "text in quotes",
        _ => return None,
    };
    Some(format!("expected {wanted}, got {written}"))
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn serde_is_put_into_plain_words() {
        for (message, expected) in [
            (
                "invalid type: string \"x\", expected u16",
                "expected a whole number, got \"x\"",
            ),
            (
                "invalid value: integer `70000`, expected u16",
                "expected a whole number from 0 to 65535, got 70000",
            ),
            (
                "invalid type: boolean `true`, expected a string",
                "expected text in quotes, got true",
            ),
            (
                "invalid type: sequence, expected a boolean",
                "expected true or false, got a list",
            ),
            (
                "unknown variant `c`, expected `a` or `b`",
                "expected \"a\" or \"b\", got \"c\"",
            ),
            (
                "unknown field `c`, expected one of `a`, `b`",
                "unknown key \"c\"; there are a, b",
            ),
            ("missing field `token`", "token is missing"),
            (
                "invalid IP address syntax",
                "expected an IP address in quotes, got \"here\"",
            ),
            ("something else", "something else"),
        ] {
            assert_eq!(plain(message, "\"here\""), expected);
        }
    }
}
