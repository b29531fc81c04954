//! Members of requests that hold lists and objects, and secrets.

use portunus_core::{FieldError, Fields, equal_in_constant_time};
use serde_json::{Map, Value};

use crate::refusal::Refusal;

/// The longest list of objects: each costs work, some of them under the room's lock.
const MAX_OBJECTS: usize = 2_000;

/// A list.
pub(crate) fn list<'a>(
    fields: Fields<'a>,
    name: &str,
) -> Result<Option<&'a Vec<Value>>, FieldError> {
    match fields.0.get(name) {
        None => Ok(None),
        Some(Value::Array(list)) => Ok(Some(list)),
        Some(_) => Err(wrong(name, "an array")),
    }
}

/// A list of objects.
pub(crate) fn objects<'a>(
    fields: Fields<'a>,
    name: &str,
) -> Result<Option<Vec<Fields<'a>>>, FieldError> {
    let Some(list) = list(fields, name)? else {
        return Ok(None);
    };
    if list.len() > MAX_OBJECTS {
        return Err(wrong(name, "an array of at most 2000 objects"));
    }
    let object = |value: &'a Value| value.as_object().map(Fields);
    let objects: Option<Vec<_>> = list.iter().map(object).collect();
    objects
        .ok_or_else(|| wrong(name, "an array of objects"))
        .map(Some)
}

/// A list of objects that is not empty, if it is there.
pub(crate) fn some_objects<'a>(
    fields: Fields<'a>,
    name: &str,
) -> Result<Option<Vec<Fields<'a>>>, Refusal> {
    match objects(fields, name)? {
        Some(list) if list.is_empty() => Err(Refusal::value(name, "the array is empty")),
        list => Ok(list),
    }
}

/// A list of texts.
pub(crate) fn texts(fields: Fields<'_>, name: &str) -> Result<Option<Vec<String>>, FieldError> {
    let Some(list) = list(fields, name)? else {
        return Ok(None);
    };
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let texts: Option<Vec<_>> = list.iter().map(text).collect();
    texts
        .ok_or_else(|| wrong(name, "an array of strings"))
        .map(Some)
}

/// An object.
pub(crate) fn object<'a>(
    fields: Fields<'a>,
    name: &str,
) -> Result<Option<&'a Map<String, Value>>, FieldError> {
    match fields.0.get(name) {
        None => Ok(None),
        Some(Value::Object(object)) => Ok(Some(object)),
        Some(_) => Err(wrong(name, "an object")),
    }
}

/// Checks that member `name` is `secret`, if there is one.
pub(crate) fn check_secret(
    fields: Fields<'_>,
    name: &'static str,
    secret: Option<&str>,
) -> Result<(), Refusal> {
    let Some(secret) = secret else { return Ok(()) };
    let shown = fields.required_string(name)?;
    match equal_in_constant_time(secret, shown) {
        true => Ok(()),
        false => Err(Refusal::Unauthorized(match name {
            "admin_key" => "wrong admin_key",
            "pin" => "wrong pin",
            _ => "wrong secret",
        })),
    }
}

fn wrong(name: &str, wanted: &'static str) -> FieldError {
    FieldError::Type {
        name: name.to_owned(),
        wanted,
    }
}
