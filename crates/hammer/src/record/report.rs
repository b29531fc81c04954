//! The report: the runs of one call of hammer, and its file.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::RunRecord;

/// The version of the record format. New fields may be added within a version. Removing a field or
/// changing its meaning requires a new version.
pub const FORM: u32 = 1;

/// All runs of one call of hammer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The [`FORM`] of the program that wrote it.
    pub form: u32,
    /// One line that names what was compared.
    pub title: String,
    /// The runs, in their order.
    pub runs: Vec<RunRecord>,
}

/// The reason why a report could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file does not exist, or may not be read.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: String,
        /// The system's error.
        source: io::Error,
    },
    /// The file is not a report.
    #[error("{path} is not a report of hammer: {source}")]
    Content {
        /// The file.
        path: String,
        /// The parser's error.
        source: serde_json::Error,
    },
    /// Another version wrote the file.
    #[error("{path} has form {form}; this version reads form {FORM}")]
    Form {
        /// The file.
        path: String,
        /// The file's form.
        form: u32,
    },
}

impl Report {
    /// Creates a report with these runs.
    pub fn new(title: impl Into<String>, runs: Vec<RunRecord>) -> Self {
        Self {
            form: FORM,
            title: title.into(),
            runs,
        }
    }

    /// Reads a file written by [`Report::write`].
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
        // The form is checked first, since another form's fields would give a misleading error.
        let value: Value = serde_json::from_str(&text).map_err(content)?;
        match value.get("form").and_then(Value::as_u64) {
            Some(form) if form != u64::from(FORM) => Err(ReadError::Form {
                path: name(),
                form: u32::try_from(form).unwrap_or(u32::MAX),
            }),
            _ => serde_json::from_value(value).map_err(content),
        }
    }

    /// Writes the report as JSON.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        fs::write(path, text)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn another_form_is_named_before_its_fields() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), r#"{"form": 99, "unknown": true}"#).unwrap();
        let error = Report::read(file.path()).unwrap_err();
        assert!(matches!(error, ReadError::Form { form: 99, .. }), "{error}");
    }
}
