//! The expected shape of an object on the wire: each member, with none missing and none too many.

use serde_json::Value;

/// The shape of a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// This value.
    Is(Value),
    /// A non-negative integer.
    Count,
    /// A number.
    Number,
    /// A text that is not empty.
    Text,
    /// A text with this start.
    Begins(&'static str),
    /// An object with these members.
    Object(Vec<(&'static str, Shape)>),
    /// A list of these.
    List(Vec<Shape>),
}

/// Returns the shape of a known value.
pub fn is(value: impl Into<Value>) -> Shape {
    Shape::Is(value.into())
}

/// Returns the shape of an object with these members.
pub fn object<const N: usize>(members: [(&'static str, Shape); N]) -> Shape {
    Shape::Object(members.into())
}

/// Returns the shape of a list of these.
pub fn list<const N: usize>(values: [Shape; N]) -> Shape {
    Shape::List(values.into())
}

impl Shape {
    /// Returns the shape of the same object with further members.
    #[must_use]
    pub fn and<const N: usize>(self, more: [(&'static str, Shape); N]) -> Self {
        match self {
            Shape::Object(mut members) => {
                members.extend(more);
                Shape::Object(members)
            }
            other => panic!("{other:?} has no members"),
        }
    }

    /// Fails if `value` differs, and prints where.
    pub fn check(&self, value: &Value) {
        if let Err(difference) = self.difference(value, "") {
            panic!("{difference}, of {value}");
        }
    }

    /// Returns whether `value` has this shape.
    pub fn fits(&self, value: &Value) -> bool {
        self.difference(value, "").is_ok()
    }

    fn difference(&self, value: &Value, at: &str) -> Result<(), String> {
        let fits = match self {
            Shape::Is(expected) => value == expected,
            Shape::Count => value.is_u64(),
            Shape::Number => value.is_number(),
            Shape::Text => value.as_str().is_some_and(|text| !text.is_empty()),
            Shape::Begins(start) => value.as_str().is_some_and(|text| text.starts_with(start)),
            Shape::Object(members) => {
                let Some(found) = value.as_object() else {
                    return Err(format!("{at} is {value} and no object"));
                };
                for (name, shape) in members {
                    let at = format!("{at}/{name}");
                    let member = found.get(*name).ok_or_else(|| format!("no {at}"))?;
                    shape.difference(member, &at)?;
                }
                let known = |name: &&String| members.iter().any(|(member, _)| member == name);
                return match found.keys().find(|name| !known(name)) {
                    Some(name) => Err(format!("{at}/{name} is too much")),
                    None => Ok(()),
                };
            }
            Shape::List(shapes) => {
                let found = value.as_array().map_or(&[][..], Vec::as_slice);
                if !value.is_array() || found.len() != shapes.len() {
                    return Err(format!("{at} is {value} and no list of {}", shapes.len()));
                }
                let mut pairs = shapes.iter().zip(found).enumerate();
                return pairs.try_for_each(|(index, (shape, value))| {
                    shape.difference(value, &format!("{at}/{index}"))
                });
            }
        };
        match fits {
            true => Ok(()),
            false => Err(format!("{at} is {value} and not {self:?}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_missing_and_what_is_too_much_are_found() {
        let shape = object([
            ("a", is(1)),
            ("b", list([Shape::Text])),
            ("c", Shape::Count),
        ]);
        assert!(shape.fits(&json!({ "a": 1, "b": ["x"], "c": 7 })));
        for wrong in [
            json!({ "a": 1, "b": ["x"] }),
            json!({ "a": 1, "b": ["x"], "c": 7, "d": 0 }),
            json!({ "a": 2, "b": ["x"], "c": 7 }),
            json!({ "a": 1, "b": [], "c": 7 }),
            json!({ "a": 1, "b": [""], "c": 7 }),
            json!({ "a": 1, "b": ["x"], "c": -7 }),
            json!([]),
        ] {
            assert!(!shape.fits(&wrong), "{wrong}");
        }
        let told = shape.difference(&json!({ "a": 1, "b": ["x"] }), "");
        assert_eq!(told, Err("no /c".to_owned()));
    }
}
