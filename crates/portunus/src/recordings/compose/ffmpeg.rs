//! The program ffmpeg.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::Path;
use std::process::{Command, Stdio};

use super::plan::Plan;
use crate::recordings::failure::Failure;
use crate::recordings::files::{self, failed};

const PROGRAM: &str = "ffmpeg";
/// The most bytes of its error output that are read.
const MAX_COMPLAINTS: u64 = 1 << 20;

/// The encoding of the film.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Output {
    video: &'static [&'static str],
    audio: &'static [&'static str],
}

impl Output {
    /// Returns the encoding for the ending of a file name.
    pub fn of(path: &Path) -> Result<Self, Failure> {
        const H264: &[&str] = &[
            "-c:v", "libx264", "-preset", "veryfast", "-pix_fmt", "yuv420p",
        ];
        const VP8: &[&str] = &[
            "-c:v",
            "libvpx",
            "-pix_fmt",
            "yuv420p",
            "-b:v",
            "2M",
            "-deadline",
            "realtime",
            "-cpu-used",
            "4",
        ];
        const AAC: &[&str] = &["-c:a", "aac", "-b:a", "128k", "-movflags", "+faststart"];
        const OPUS: &[&str] = &["-c:a", "libopus", "-b:a", "96k"];
        let (video, audio) = match files::extension(path).as_str() {
            "mp4" => (H264, AAC),
            "mkv" => (H264, OPUS),
            "webm" => (VP8, OPUS),
            "opus" => (&[][..], OPUS),
            "wav" => (&[][..], &["-c:a", "pcm_s16le"][..]),
            _ => {
                let why = "its name has to end in .mp4, .webm, .mkv, .opus or .wav";
                return Err(failed(path, why));
            }
        };
        Ok(Self { video, audio })
    }
}

/// Checks that it is installed.
pub(super) fn check() -> Result<(), Failure> {
    let mut command = Command::new(PROGRAM);
    command
        .arg("-version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().map(drop).map_err(not_started)
}

fn not_started(error: std::io::Error) -> Failure {
    match error.kind() {
        ErrorKind::NotFound => Failure::NoFfmpeg,
        _ => Failure::Other(format!("ffmpeg cannot be started: {error}")),
    }
}

/// Runs it, and names the film once it is complete.
pub(super) fn compose(
    plan: &Plan,
    output: Output,
    out: &Path,
    progress: &mut dyn FnMut(f32),
) -> Result<(), Failure> {
    let has_video = plan.has_video() && !output.video.is_empty();
    if !has_video && !plan.has_audio() {
        return Err(failed(out, "there is no sound for it in the recordings"));
    }
    let new = files::temporary(out)?;
    let mut command = Command::new(PROGRAM);
    command.args(["-hide_banner", "-v", "error", "-nostdin", "-y"]);
    for source in plan.sources() {
        // The times of the file are kept, with its offset added.
        command.args([
            "-seek_timestamp",
            "1",
            "-itsoffset",
            &format!("{:.6}", source.offset),
        ]);
        command.arg("-i").arg(local(&source.path));
    }
    command.args(["-filter_complex", &plan.filters(has_video)]);
    if has_video {
        command.args(["-map", "[v]"]).args(output.video);
    }
    if plan.has_audio() {
        command.args(["-map", "[a]"]).args(output.audio);
    }
    let total = plan.duration().as_secs_f64();
    command.args([
        "-t",
        &format!("{total:.3}"),
        "-progress",
        "pipe:1",
        "-nostats",
    ]);
    command.args(["-f", format_of(out)]).arg(local(new.path()));
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().map_err(not_started)?;
    let complaints = child.stderr.take().map(|stderr| {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = stderr.take(MAX_COMPLAINTS).read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        })
    });
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            let micros = line
                .strip_prefix("out_time_us=")
                .and_then(|it| it.parse::<f64>().ok());
            if let Some(micros) = micros {
                progress((micros / 1e6 / total.max(0.001)) as f32);
            }
        }
    }
    let ended = child.wait().map_err(not_started)?;
    let complaints = complaints.and_then(|it| it.join().ok()).unwrap_or_default();
    if !ended.success() {
        let last: Vec<_> = complaints.lines().rev().take(5).collect();
        let last: Vec<_> = last.into_iter().rev().collect();
        return Err(failed(
            out,
            format!("ffmpeg failed ({ended}): {}", last.join("; ")),
        ));
    }
    files::keep(new, out)
}

/// Returns ffmpeg's name of the format, since the file has no name yet.
fn format_of(out: &Path) -> &'static str {
    match files::extension(out).as_str() {
        "mp4" => "mp4",
        "webm" => "webm",
        "opus" => "opus",
        "wav" => "wav",
        _ => "matroska",
    }
}

/// Returns a path that is neither an option nor a protocol.
fn local(path: &Path) -> OsString {
    let mut local = OsString::from("file:");
    local.push(path);
    local
}
