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
    /// The place of its name.
    pub at: Location,
    /// Its comments, line by line.
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
    /// Returns the settings in the order of the file.
    pub fn settings(&self) -> &[Setting] {
        &self.0
    }

    /// Returns the setting with this name.
    pub fn get(&self, name: &str) -> Option<&Setting> {
        self.0.iter().find(|setting| setting.name == name)
    }

    /// Returns the scalar with this name as Janus sees it, see [`Value::text`].
    pub fn text(&self, name: &str) -> Option<String> {
        self.get(name)?.value.text()
    }

    /// Returns whether the setting with this name is on. An absent one is off, as in Janus.
    pub fn is_on(&self, name: &str) -> bool {
        let setting = self.get(name);
        setting.and_then(|setting| setting.value.flag()) == Some(true)
    }
}

impl Setting {
    /// Returns its settings if it is a group.
    pub fn group(&self) -> Option<&Group> {
        match &self.value {
            Value::Group(group) => Some(group),
            _ => None,
        }
    }
}

impl Value {
    /// Returns a scalar as text, since Janus converts all scalars to text. Lists and groups have
    /// none.
    pub fn text(&self) -> Option<String> {
        match self {
            Value::Bool(value) => Some(value.to_string()),
            Value::Integer(value) => Some(value.to_string()),
            Value::Float(value) => Some(value.to_string()),
            Value::Text(text) => Some(text.clone()),
            Value::Array(_) | Value::List(_) | Value::Group(_) => None,
        }
    }

    /// Returns the value of a switch. Like Janus, accepts `yes`, `true` and `1` as on, ignoring
    /// case. Returns `None` if it is neither on nor off.
    pub fn flag(&self) -> Option<bool> {
        let text = self.text()?;
        let is = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
        match (is(&["yes", "true", "1"]), is(&["no", "false", "0", ""])) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        }
    }

    /// Returns a whole number.
    pub fn integer(&self) -> Option<i64> {
        match self {
            Value::Integer(value) => Some(*value),
            Value::Text(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    /// Returns the values of an array or a list.
    pub fn elements(&self) -> Option<&[Value]> {
        match self {
            Value::Array(values) | Value::List(values) => Some(values),
            _ => None,
        }
    }

    /// Returns the name of its type for error messages.
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
