//! Sections of lists, whose members are read by those whom they concern: as JSON, in which they have no lines.

use std::ops::Range;

use serde_json::{Map, Value};
use toml::de::{DeTable, DeValue};

use super::keys::EntryMistake;

/// The members of a section.
pub(super) fn members(table: &DeTable<'_>) -> Map<String, Value> {
    let member = |(name, value): (&toml::Spanned<_>, &toml::Spanned<DeValue<'_>>)| {
        let name: &std::borrow::Cow<'_, str> = name.get_ref();
        (name.to_string(), json(value.get_ref()))
    };
    table.iter().map(member).collect()
}

fn json(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => text.as_ref().into(),
        DeValue::Integer(number) => {
            let value = i64::from_str_radix(number.as_str(), number.radix());
            value.map_or(Value::Null, Value::from)
        }
        DeValue::Float(number) => {
            let value = number.as_str().parse::<f64>();
            value.map_or(Value::Null, Value::from)
        }
        DeValue::Boolean(value) => (*value).into(),
        DeValue::Datetime(time) => time.to_string().into(),
        DeValue::Array(entries) => entries.iter().map(|entry| json(entry.get_ref())).collect(),
        DeValue::Table(table) => Value::Object(members(table)),
    }
}

/// Where the mistake is; none if it is about something that is missing.
pub(super) fn find(table: &DeTable<'_>, mistake: &EntryMistake) -> Option<Range<usize>> {
    let of_key = |table: &DeTable<'_>| table.get(mistake.key.as_str()).map(|value| value.span());
    let Some((list, index)) = mistake.within else {
        return of_key(table);
    };
    let entry = table.get(list)?.get_ref().as_array()?.get(index)?;
    let inner = entry.get_ref().as_table().and_then(of_key);
    Some(inner.unwrap_or(entry.span()))
}

/// The member's name, from the section on.
pub(super) fn path(mistake: &EntryMistake) -> String {
    match mistake.within {
        None => mistake.key.clone(),
        Some((list, index)) => format!("{list}[{index}].{}", mistake.key),
    }
}
