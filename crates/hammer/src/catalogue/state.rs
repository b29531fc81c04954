//! The state of a call, by which an interrupted one goes on.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The file in the output folder.
const FILE: &str = "state.json";

/// What has been measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct State {
    /// What all runs depend on: the extent and the cores. Runs of others are not continued.
    pub(super) setting: String,
    /// The versions of servers, by their names.
    pub(super) versions: BTreeMap<String, String>,
    /// The outcomes of jobs, by their names.
    pub(super) done: BTreeMap<String, Outcome>,
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Outcome {
    /// The command.
    pub(super) command: String,
    /// How long it took.
    pub(super) seconds: f64,
    /// Why there is no run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) failure: Option<String>,
}

impl State {
    /// Reads the state in `folder`. A folder without one has an empty state.
    pub(super) fn read(folder: &Path, setting: String) -> Result<Self, String> {
        let path = folder.join(FILE);
        let new = Self {
            setting,
            ..Self::default()
        };
        let Ok(text) = fs::read_to_string(&path) else {
            return Ok(new);
        };
        let wrong = |reason: &str| format!("{}: {reason}", path.display());
        let state: Self = serde_json::from_str(&text).map_err(|error| wrong(&error.to_string()))?;
        match state.setting == new.setting {
            true => Ok(state),
            false => Err(wrong(&format!(
                "it is of {}, and this call of {}; --fresh begins anew, --out takes another folder",
                state.setting, new.setting
            ))),
        }
    }

    /// Writes it, so that it is whole whenever the program ends.
    pub(super) fn write(&self, folder: &Path) -> Result<(), String> {
        let (path, new) = (folder.join(FILE), folder.join("state.json.new"));
        let text = serde_json::to_string_pretty(self).map_err(|error| error.to_string())?;
        fs::write(&new, text + "\n")
            .and_then(|()| fs::rename(&new, &path))
            .map_err(|error| format!("{}: {error}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn a_state_goes_on_with_the_same_setting_only() {
        let folder = tempfile::tempdir().unwrap();
        let mut state = State::read(folder.path(), "quick".to_owned()).unwrap();
        let outcome = Outcome {
            command: "lab".to_owned(),
            seconds: 1.0,
            failure: None,
        };
        state.done.insert("a".to_owned(), outcome);
        state.write(folder.path()).unwrap();
        assert_eq!(
            State::read(folder.path(), "quick".to_owned()).unwrap(),
            state
        );
        let other = State::read(folder.path(), "full".to_owned()).unwrap_err();
        assert!(other.contains("--fresh"), "{other}");
    }
}
