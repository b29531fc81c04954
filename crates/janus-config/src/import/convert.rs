//! Conversion of Janus's values to ours.

use toml::{Table, Value as Toml};

use crate::Value;

/// The required type of a setting here.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    /// On or off.
    Flag,
    /// On or off, with the opposite meaning here.
    Inverted,
    /// A whole number.
    Number,
    /// A whole number that is multiplied by 1,000: seconds that become ms.
    Thousandths,
    /// Text.
    Text,
    /// A list of texts.
    Texts,
    /// Comma-separated IP addresses, as a list.
    Addresses,
    /// Comma-separated text, as a list.
    Split,
    /// The path of an API, without a trailing slash.
    BasePath,
    /// A list of pairs of texts.
    Pairs,
    /// A list of groups with these keys.
    Groups(fn(&str) -> Option<Kind>),
}

/// Converts the value. An error says what was expected.
pub(super) fn convert(kind: Kind, value: &Value) -> Result<Toml, String> {
    let expected = |what: &str| format!("expected {what}, found {}", value.kind());
    let text = || value.text().ok_or_else(|| expected("text in quotes"));
    match kind {
        Kind::Flag | Kind::Inverted => match value.flag() {
            Some(flag) => Ok((flag != matches!(kind, Kind::Inverted)).into()),
            None => Err(expected("true or false")),
        },
        Kind::Number => match value.integer() {
            Some(number) => Ok(number.into()),
            None => Err(expected("a whole number")),
        },
        Kind::Thousandths => {
            let number = value.integer().and_then(|it| it.checked_mul(1_000));
            number
                .map(Toml::from)
                .ok_or_else(|| expected("a whole number"))
        }
        Kind::Text => text().map(Toml::from),
        Kind::Texts => {
            let elements = value.elements().ok_or_else(|| expected("[ … ]"))?;
            let texts = elements.iter().map(|it| convert(Kind::Text, it));
            texts.collect::<Result<Vec<_>, _>>().map(Toml::from)
        }
        Kind::Addresses => addresses(&text()?).map(Toml::from),
        Kind::Split => Ok(Toml::Array(split(&text()?).map(Toml::from).collect())),
        Kind::BasePath => {
            let path = text()?;
            Ok(path.trim_end_matches('/').into())
        }
        Kind::Pairs => {
            let pairs = value.elements().ok_or_else(|| expected("( … )"))?;
            let pairs = pairs.iter().map(|it| convert(Kind::Texts, it));
            pairs.collect::<Result<Vec<_>, _>>().map(Toml::from)
        }
        Kind::Groups(kind_of) => {
            let elements = value.elements().ok_or_else(|| expected("( { … } )"))?;
            let tables = elements.iter().map(|it| table(kind_of, it));
            tables.collect::<Result<Vec<_>, _>>().map(Toml::from)
        }
    }
}

fn table(kind_of: fn(&str) -> Option<Kind>, value: &Value) -> Result<Toml, String> {
    let Value::Group(group) = value else {
        return Err(format!("expected {{ … }}, found {}", value.kind()));
    };
    let key = |setting: &crate::Setting| {
        let (name, line) = (&setting.name, setting.at.line);
        let kind = kind_of(name).ok_or_else(|| format!("line {line}: {name} is not known"))?;
        let value = convert(kind, &setting.value);
        let value = value.map_err(|reason| format!("line {line}: {name}: {reason}"))?;
        Ok::<_, String>((name.clone(), value))
    };
    let keys = group.settings().iter().map(key);
    keys.collect::<Result<Table, _>>().map(Toml::from)
}

/// Splits comma-separated IP addresses.
fn addresses(text: &str) -> Result<Vec<String>, String> {
    let address = |part: &str| match part.parse::<std::net::IpAddr>() {
        Ok(address) => Ok(address.to_string()),
        Err(_) => Err(format!(
            "{part} is no IP address: name the addresses that are meant (`ip address` lists them)"
        )),
    };
    split(text).map(address).collect()
}

/// Splits comma-separated text.
pub(super) fn split(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split(',').map(str::trim);
    parts.filter(|part| !part.is_empty())
}
