//! What others make of recordings: Janus's `janus-pp-rec` makes files of them, and ffprobe decodes those. Where these
//! programs are not installed nothing is made of them, and that is said.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// What ffprobe finds in a file of one stream.
#[derive(Debug, Clone, Copy)]
pub struct Decoded {
    /// Frames that could be decoded.
    pub frames: usize,
    /// How long it lasts.
    pub duration: Duration,
}

/// Makes a file of the recording, with this extension to its name; none without `janus-pp-rec`. Panics if it cannot be
/// converted.
pub fn convert(recording: &Path, extension: &str) -> Option<PathBuf> {
    if !is_installed("janus-pp-rec") {
        return None;
    }
    let target = recording.with_extension(extension);
    let converted = Command::new("janus-pp-rec")
        .arg(recording)
        .arg(&target)
        .output()
        .unwrap();
    let log = String::from_utf8_lossy(&converted.stdout);
    assert!(converted.status.success(), "{log}");
    Some(target)
}

/// Decodes a file; none without `ffprobe`. Panics if anything in it cannot be decoded.
pub fn decode(file: &Path) -> Option<Decoded> {
    if !is_installed("ffprobe") {
        return None;
    }
    let probe = |arguments: &[&str]| {
        let probed = Command::new("ffprobe")
            .args(["-v", "error", "-of", "csv=p=0"])
            .args(arguments)
            .arg(file)
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&probed.stderr);
        assert!(errors.trim().is_empty(), "{errors}");
        String::from_utf8(probed.stdout).unwrap()
    };
    let frames = probe(&["-count_frames", "-show_entries", "stream=nb_read_frames"]);
    let seconds = probe(&["-show_entries", "format=duration"]);
    Some(Decoded {
        frames: frames.trim().parse().expect(&frames),
        duration: Duration::from_secs_f64(seconds.trim().parse().expect(&seconds)),
    })
}

fn is_installed(program: &str) -> bool {
    let found = Command::new(program).arg("-h").output().is_ok();
    if !found {
        println!("there is no {program}: what was recorded is not decoded");
    }
    found
}
