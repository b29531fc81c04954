//! The configuration of the recorder.

use std::path::PathBuf;

use portunus_config::{Configuration, Finding, Probe, Recorded, Section, Severity, takes_files};
use serde::{Deserialize, Serialize};

use crate::Format;
use crate::place::Places;

/// The files and folders of recordings. Every key has a default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RecorderConfig {
    /// Whether recording is allowed at all.
    pub enabled: bool,
    /// The format of files, unless a request names one.
    pub format: Format,
    /// The folder that names of files and folders are relative to. Default: the working directory.
    #[serde(with = "portunus_config::optional")]
    pub dir: Option<PathBuf>,
    /// More folders in which clients may name files and folders. `/` allows all.
    pub folders: Vec<PathBuf>,
    /// The suffix of a file, after a dot, until it is complete. Empty: no suffix.
    pub temporary: String,
    /// Whether an existing file is replaced. Otherwise recording is refused.
    pub overwrite: bool,
    /// The greatest length of a file in bytes, at which its recording ends. 0: no limit.
    pub max_file_bytes: u64,
    /// The MiB of the disk that are kept free. With less, no recording starts, and running ones
    /// end. 0: the disk may be filled.
    pub keep_free_mb: u64,
    /// Whether a manifest is written next to the files of a room or call.
    pub manifest: bool,
    /// The MiB of packets that may wait for slow disks, of all recordings together. Further packets
    /// are dropped.
    pub max_waiting_mb: u64,
    /// The program with its arguments that runs for each complete file. `{file}` and `{manifest}`
    /// are replaced. Empty: none.
    pub on_complete: Vec<String>,
    /// The time limit of that program, in seconds.
    pub on_complete_timeout: u64,
}

impl Default for RecorderConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            format: Format::Mjr,
            dir: None,
            folders: Vec::new(),
            temporary: String::new(),
            overwrite: false,
            max_file_bytes: 0,
            keep_free_mb: 512,
            manifest: true,
            max_waiting_mb: 256,
            on_complete: Vec::new(),
            on_complete_timeout: 600,
        }
    }
}

impl Configuration for RecorderConfig {
    fn read(section: &mut Section<'_>) -> Self {
        let recording: Self = section.keys();
        let mut folders = recording.folders.iter();
        let empty = folders.any(|folder| folder.as_os_str().is_empty());
        section.require(&["folders"], !empty, "expected paths in quotes, got \"\"");
        let suffix = &recording.temporary;
        let plain = suffix.len() <= 16 && suffix.bytes().all(|b| b.is_ascii_alphanumeric());
        section.require(
            &["temporary"],
            plain,
            "expected letters and digits, 16 at most",
        );
        let has_program = recording
            .on_complete
            .first()
            .is_none_or(|it| !it.is_empty());
        section.require(
            &["on_complete"],
            has_program,
            "expected a program, and then its arguments",
        );
        section.range(
            "on_complete_timeout",
            recording.on_complete_timeout,
            1..=86_400,
        );
        section.range("max_waiting_mb", recording.max_waiting_mb, 1..=1_048_576);
        recording
    }

    fn probe(&self, probe: &mut Probe) {
        if let Some(dir) = &self.dir {
            probe.written_folder("dir", dir);
        }
        for folder in &self.folders {
            probe.written_folder("folders", folder);
        }
        if let Some(program) = self.on_complete.first() {
            probe.program("on_complete", program);
        }
    }
}

impl RecorderConfig {
    /// Checks that the recordings of a key can be made.
    pub fn check(&self, recorded: &Recorded) -> Result<(), Finding> {
        let finding = |severity, text| Finding {
            key: recorded.key.clone(),
            text,
            severity,
        };
        if !self.enabled {
            let text = "nothing is recorded: recording.enabled is false".to_owned();
            return Err(finding(Severity::Warning, text));
        }
        let places = Places::new(self.dir.as_deref(), &self.folders);
        let file = places.file(recorded.dir.as_deref(), "name", "mjr");
        let file = file.map_err(|error| finding(Severity::Error, error.to_string()))?;
        let folder = file.parent().unwrap_or(&file);
        takes_files(folder).map_err(|error| {
            let text = format!("cannot record into {}: {error}", folder.display());
            finding(Severity::Error, text)
        })
    }
}
