//! The settings of a file.

use super::Location;

/// Named settings.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Group(pub(crate) Vec<Setting>);

/// A setting.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: Value,
    /// Where its name is.
    pub at: Location,
    /// The comments that belong to it, line by line.
    pub comments: Vec<String>,
}

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number, of 32 or of 64 bits.
    Integer(i64),
    /// A number with a point or an exponent.
    Float(f64),
    /// Text.
    Text(String),
    /// `[ … ]`: scalars of one type.
    Array(Vec<Value>),
    /// `( … )`: values of any type.
    List(Vec<Value>),
    /// `{ … }`
    Group(Group),
}

impl Group {
    /// The settings in the order of the file.
    pub fn settings(&self) -> &[Setting] {
        &self.0
    }

    /// The setting of that name.
    pub fn get(&self, name: &str) -> Option<&Setting> {
        self.0.iter().find(|setting| setting.name == name)
    }

    /// The scalar of that name as Janus sees it, see [`Value::text`].
    pub fn text(&self, name: &str) -> Option<String> {
        self.get(name)?.value.text()
    }

    /// Whether the setting of that name is on. Janus takes an absent one as off.
    pub fn is_on(&self, name: &str) -> bool {
        let setting = self.get(name);
        setting.and_then(|setting| setting.value.flag()) == Some(true)
    }
}

impl Setting {
    /// The settings in it, if it is a group.
    pub fn group(&self) -> Option<&Group> {
        match &self.value {
            Value::Group(group) => Some(group),
            _ => None,
        }
    }
}

impl Value {
    /// A scalar as text: Janus turns all scalars into text first. Lists and groups have none.
    pub fn text(&self) -> Option<String> {
        match self {
            Value::Bool(value) => Some(value.to_string()),
            Value::Integer(value) => Some(value.to_string()),
            Value::Float(value) => Some(value.to_string()),
            Value::Text(text) => Some(text.clone()),
            Value::Array(_) | Value::List(_) | Value::Group(_) => None,
        }
    }

    /// A switch: Janus takes `yes`, `true` and `1` as on, in any case. `None`: it is neither on nor off.
    pub fn flag(&self) -> Option<bool> {
        let text = self.text()?;
        let is = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
        match (is(&["yes", "true", "1"]), is(&["no", "false", "0", ""])) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        }
    }

    /// A whole number.
    pub fn integer(&self) -> Option<i64> {
        match self {
            Value::Integer(value) => Some(*value),
            Value::Text(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    /// The values of an array or a list.
    pub fn elements(&self) -> Option<&[Value]> {
        match self {
            Value::Array(values) | Value::List(values) => Some(values),
            _ => None,
        }
    }

    /// The name of its type, for people.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Value::Bool(_) => "true or false",
            Value::Integer(_) => "a whole number",
            Value::Float(_) => "a number with a point",
            Value::Text(_) => "text in quotes",
            Value::Array(_) => "an array",
            Value::List(_) => "a list",
            Value::Group(_) => "a group",
        }
    }
}
