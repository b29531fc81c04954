//! `portunus recordings`: lists, examines, converts, composes and repairs recordings. No server
//! runs.

mod compose;
mod convert;
mod failure;
mod files;
mod info;
mod list;
mod progress;
mod repair;
mod text;
mod wav;

use std::process::ExitCode;

use clap::Subcommand;

use compose::options::ComposeOptions;
use convert::ConvertOptions;
use failure::Failure;
use info::InfoOptions;
use list::ListOptions;
use repair::RepairOptions;

/// The exit status when a part failed.
const FAILED: u8 = 1;
/// The exit status when ffmpeg is missing.
const NO_FFMPEG: u8 = 3;

/// What can be done with recordings.
#[derive(Debug, Subcommand)]
pub(crate) enum Recordings {
    /// What is in a folder: manifests with their files, and other files; duration, codecs, state
    List(ListOptions),
    /// What is in files: codecs, frames, losses, gaps, duration; of .mjr its header, too
    Info(InfoOptions),
    /// Make other files of .mjr files that were recorded together, by what OUT ends in: webm, mkv,
    /// mp4, opus, wav, srt (messages), pcap (packets)
    Convert(ConvertOptions),
    /// Make one film of all files of a manifest (with ffmpeg)
    Compose(ComposeOptions),
    /// Complete files whose server ended in the middle: WebM, Matroska, MP4, .mjr
    Repair(RepairOptions),
}

impl Recordings {
    /// Runs the command, and reports its outcome.
    pub(crate) fn run(&self) -> ExitCode {
        let done = match self {
            Recordings::List(options) => list::run(options),
            Recordings::Info(options) => info::run(options),
            Recordings::Convert(options) => convert::run(options),
            Recordings::Compose(options) => compose::run(options),
            Recordings::Repair(options) => repair::run(options),
        };
        let Err(failure) = done else {
            return ExitCode::SUCCESS;
        };
        match failure {
            Failure::Told => {}
            Failure::Other(_) | Failure::NoFfmpeg => eprintln!("portunus: {failure}"),
        }
        ExitCode::from(match failure {
            Failure::Told | Failure::Other(_) => FAILED,
            Failure::NoFfmpeg => NO_FFMPEG,
        })
    }
}
