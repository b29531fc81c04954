//! Files that programs make of what is recorded.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::encoding::Encoding;
use crate::ffmpeg::{Program, arguments};

/// A conversion of recorded files to one file.
#[derive(Debug)]
pub(super) struct Conversion<'a> {
    /// ffmpeg.
    pub(super) ffmpeg: &'a str,
    /// The program that composes the files of a room: this server's own.
    pub(super) composer: Option<&'a Path>,
    pub(super) encoding: Encoding,
}

impl Conversion<'_> {
    /// Converts a file. The new one must not be there.
    pub(super) async fn convert(&self, from: &Path, to: &Path) -> Result<(), String> {
        let extension = to
            .extension()
            .and_then(|it| it.to_str())
            .unwrap_or_default();
        let codecs: &[&str] = match extension {
            "mp4" => &[
                "-map",
                "0:v?",
                "-map",
                "0:a?",
                "-c:v",
                "libx264",
                "-preset",
                "veryfast",
                "-pix_fmt",
                "yuv420p",
                "-c:a",
                "aac",
                "-b:a",
                "128k",
                "-movflags",
                "+faststart",
            ],
            "webm" => &[
                "-map",
                "0:v?",
                "-map",
                "0:a?",
                "-c:v",
                "libvpx",
                "-deadline",
                "realtime",
                "-cpu-used",
                "4",
                "-b:v",
                "2M",
                "-c:a",
                "libopus",
            ],
            "mp3" => &["-map", "0:a", "-c:a", "libmp3lame", "-b:a", "128k"],
            _ => &["-map", "0:a", "-c:a", "libopus", "-b:a", "96k"],
        };
        let mut all = arguments(["-hide_banner", "-v", "error", "-nostdin", "-n", "-i"]);
        all.push(local(from));
        all.extend(arguments(codecs.iter().copied()));
        all.push(local(to));
        let program = Program::start(self.ffmpeg, all, None).await;
        let mut program = program.map_err(|error| error.to_string())?;
        program.ended().await.map_err(|error| error.to_string())
    }

    /// Composes the files of a manifest. The new file must not be there.
    pub(super) async fn compose(
        &self,
        manifest: &Path,
        layout: &str,
        to: &Path,
    ) -> Result<(), String> {
        let composer = self.composer.and_then(Path::to_str);
        let composer = composer.ok_or("this server cannot compose rooms")?;
        let layout = match layout.starts_with("speaker") || layout.starts_with("single-speaker") {
            true => "speaker",
            false => "grid",
        };
        let Encoding {
            width, height, fps, ..
        } = self.encoding;
        let (size, fps) = (format!("{width}x{height}"), fps.to_string());
        let mut all = arguments([
            "recordings",
            "compose",
            "--layout",
            layout,
            "--size",
            &size,
            "--fps",
            &fps,
        ]);
        // It knows Ogg by another name.
        let made: PathBuf = match to.extension().is_some_and(|it| it == "ogg") {
            true => to.with_extension("opus"),
            false => to.to_owned(),
        };
        all.push(manifest.into());
        all.push(made.clone().into());
        let program = Program::start(composer, all, None).await;
        let mut program = program.map_err(|error| error.to_string())?;
        program.ended().await.map_err(|error| error.to_string())?;
        if made != to {
            let renamed = tokio::fs::rename(&made, to).await;
            renamed.map_err(|error| format!("{} cannot be renamed: {error}", made.display()))?;
        }
        Ok(())
    }
}

/// Returns a path that is neither an option nor a protocol of ffmpeg.
fn local(path: &Path) -> OsString {
    let mut local = OsString::from("file:");
    local.push(path);
    local
}
