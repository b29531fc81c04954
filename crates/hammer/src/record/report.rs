//! The runs of one call of hammer, and their file.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::RunRecord;

/// The form of the records that this version writes. Fields may be added within a form; a field that
/// goes or changes its meaning makes a new one.
pub const FORM: u32 = 1;

/// All runs of one call of hammer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`FORM`] of the program that wrote it.
    pub form: u32,
    /// One line that says what was compared.
    pub title: String,
    /// In the order in which they ran.
    pub runs: Vec<RunRecord>,
}

/// Why a report could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file is not there, or may not be read.
    #[error("{path}: {source}")]
    File {
        /// Which file.
        path: String,
        /// What the system says.
        source: io::Error,
    },
    /// It is not a report.
    #[error("{path} is not a report of hammer: {source}")]
    Content {
        /// Which file.
        path: String,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// Another version wrote it.
    #[error("{path} has form {form}; this version reads form {FORM}")]
    Form {
        /// Which file.
        path: String,
        /// The form that it has.
        form: u32,
    },
}

impl Report {
    /// A report with these runs.
    pub fn new(title: impl Into<String>, runs: Vec<RunRecord>) -> Self {
        Self {
            form: FORM,
            title: title.into(),
            runs,
        }
    }

    /// Reads what [`Report::write`] wrote.
    pub fn read(path: &Path) -> Result<Self, ReadError> {
        let name = || path.display().to_string();
        let text = fs::read_to_string(path).map_err(|source| ReadError::File {
            path: name(),
            source,
        })?;
        let content = |source| ReadError::Content {
            path: name(),
            source,
        };
        // The form first: another form's fields would give a misleading error.
        let value: Value = serde_json::from_str(&text).map_err(content)?;
        match value.get("form").and_then(Value::as_u64) {
            Some(form) if form != u64::from(FORM) => Err(ReadError::Form {
                path: name(),
                form: u32::try_from(form).unwrap_or(u32::MAX),
            }),
            _ => serde_json::from_value(value).map_err(content),
        }
    }

    /// Writes it as JSON.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        fs::write(path, text)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn another_form_is_named_before_its_fields() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), r#"{"form": 99, "unknown": true}"#).unwrap();
        let error = Report::read(file.path()).unwrap_err();
        assert!(matches!(error, ReadError::Form { form: 99, .. }), "{error}");
    }
}
