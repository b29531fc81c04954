//! JSON as Twirp has it: names as they are declared, and default values written out.

pub(crate) mod schema;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::token::without_nulls;
use schema::{Kind, Message};

/// Reads the first JSON value of a body as a message. Both spellings of names are accepted, and
/// unknown members are ignored.
pub(crate) fn read<T: DeserializeOwned>(body: &[u8]) -> Option<T> {
    let mut values = serde_json::Deserializer::from_slice(body).into_iter::<Value>();
    let value = without_nulls(values.next()?.ok()?);
    serde_json::from_value(value).ok()
}

/// Writes a message.
pub(crate) fn write<T: Serialize>(message: &T, schema: &Message) -> Result<String, String> {
    let value = serde_json::to_value(message).map_err(|error| error.to_string())?;
    Ok(complete(value, schema).to_string())
}

/// Gives the members their declared names, and adds those that are missing.
fn complete(value: Value, schema: &Message) -> Value {
    let Value::Object(mut members) = value else {
        return value;
    };
    let mut complete = Map::new();
    for (name, kind) in schema.fields {
        let value = match (members.remove(&lower_camel_case(name)), kind) {
            (Some(value), Kind::One(schema) | Kind::Chosen(schema)) => {
                self::complete(value, schema)
            }
            (Some(value), Kind::Given) => with_declared_names(value),
            (Some(Value::Array(values)), Kind::Messages(schema)) => {
                let values = values.into_iter();
                values.map(|value| self::complete(value, schema)).collect()
            }
            (Some(value), _) => value,
            (None, Kind::Text) => "".into(),
            (None, Kind::Number) => 0.into(),
            (None, Kind::Long) => "0".into(),
            (None, Kind::Flag) => false.into(),
            (None, Kind::Enum(first)) => (*first).into(),
            (None, Kind::List | Kind::Messages(_)) => Value::Array(Vec::new()),
            (None, Kind::Map) => Value::Object(Map::new()),
            (None, Kind::One(_)) => Value::Null,
            (None, Kind::Choice | Kind::Chosen(_) | Kind::Given) => continue,
        };
        complete.insert((*name).to_owned(), value);
    }
    Value::Object(complete)
}

/// Gives all members their declared names.
fn with_declared_names(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let named = members
                .into_iter()
                .map(|(name, value)| (snake_case(&name), with_declared_names(value)));
            Value::Object(named.collect())
        }
        Value::Array(values) => values.into_iter().map(with_declared_names).collect(),
        value => value,
    }
}

/// Returns the name of a field that JSON has by default.
fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len());
    for character in name.chars() {
        if character.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(character.to_ascii_lowercase());
    }
    snake
}

/// Returns the name that JSON has for a field by default.
fn lower_camel_case(name: &str) -> String {
    let mut upper = false;
    let mut camel = String::with_capacity(name.len());
    for character in name.chars() {
        match character {
            '_' => upper = true,
            _ if upper => {
                camel.push(character.to_ascii_uppercase());
                upper = false;
            }
            _ => camel.push(character),
        }
    }
    camel
}

#[cfg(test)]
mod tests;
