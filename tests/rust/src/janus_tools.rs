//! Recordings in other programs: Janus's `janus-pp-rec` converts them, and ffprobe decodes the
//! result. If these programs are not installed, this is skipped with a message.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The result of ffprobe for a file of one stream.
#[derive(Debug, Clone, Copy)]
pub struct Decoded {
    /// Frames that could be decoded.
    pub frames: usize,
    /// The duration.
    pub duration: Duration,
}

/// Converts the recording to a file with this extension. Returns `None` without `janus-pp-rec`.
/// Panics if it cannot be converted.
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

/// Decodes a file of one stream. Returns `None` without `ffprobe`. Panics if anything in it cannot
/// be decoded.
pub fn decode(file: &Path) -> Option<Decoded> {
    let (streams, duration) = decode_all(file)?;
    let [(_, frames)] = streams.as_slice() else {
        panic!("{streams:?}");
    };
    Some(Decoded {
        frames: *frames,
        duration,
    })
}

/// Decodes a file. Returns the codec and the frames of each stream, and the file's duration, or
/// `None` without `ffprobe`. Panics if anything in it cannot be decoded.
pub fn decode_all(file: &Path) -> Option<(Vec<(String, usize)>, Duration)> {
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
    let entries = "stream=codec_name,nb_read_frames";
    let streams = probe(&["-count_frames", "-show_entries", entries]);
    let stream = |line: &str| {
        let mut values = line.split(',');
        let codec = values.next().expect(line);
        let frames = values.next().expect(line).parse().expect(line);
        (codec.to_owned(), frames)
    };
    let seconds = probe(&["-show_entries", "format=duration"]);
    let duration = Duration::from_secs_f64(seconds.trim().parse().expect(&seconds));
    let lines = streams.lines().filter(|line| !line.is_empty());
    Some((lines.map(stream).collect(), duration))
}

fn is_installed(program: &str) -> bool {
    let found = Command::new(program).arg("-h").output().is_ok();
    if !found {
        println!("there is no {program}: what was recorded is not decoded");
    }
    found
}
