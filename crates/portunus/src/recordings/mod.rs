//! `portunus recordings`: what was recorded is listed, examined, converted, composed and repaired. No server runs.

mod compose;
mod convert;
mod files;
mod info;
mod list;
mod progress;
mod repair;
mod text;
mod wav;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};

use compose::Layout;

/// The exit status when something could not be done.
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
    /// Make other files of .mjr files that were recorded together, by what OUT ends in: webm, mkv, mp4, opus, wav,
    /// srt (messages), pcap (packets)
    Convert(ConvertOptions),
    /// Make one film of all files of a manifest (with ffmpeg)
    Compose(ComposeOptions),
    /// Complete files whose server ended in the middle: WebM, Matroska, MP4, .mjr
    Repair(RepairOptions),
}

#[derive(Debug, Args)]
pub(crate) struct ListOptions {
    /// The folder
    #[arg(default_value = ".")]
    dir: PathBuf,
    /// As JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct InfoOptions {
    /// Recordings or manifests
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// As JSON: a list with an object for each file
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = CONVERT_HELP)]
pub(crate) struct ConvertOptions {
    /// .mjr files of audio, video and data that were recorded together, or a manifest of one participant; the last
    /// name is that of the new file
    #[arg(required = true, num_args = 2.., value_names = ["IN", "OUT"])]
    files: Vec<PathBuf>,
    /// Whose files of a manifest are meant: the id in the room
    #[arg(long, value_name = "ID")]
    participant: Option<String>,
    /// Write over a file that is there
    #[arg(long)]
    force: bool,
}

const CONVERT_HELP: &str = "\
Nothing is encoded anew, so quality stays: WebM takes VP8, VP9, AV1 and Opus; MP4 takes H.264, H.265, AV1, VP9 and Opus;
Matroska (.mkv) takes all, G.711 as well. WAV is decoded from Opus or G.711. Where a codec or the size of H.264 pictures
changes, another file begins: OUT-2, OUT-3 and so on.";

#[derive(Debug, Args)]
#[command(after_help = COMPOSE_HELP)]
pub(crate) struct ComposeOptions {
    /// Manifests of a room or call; the last name is that of the new file. Its ending says what it is: mp4, webm, mkv; opus
    /// or wav for sound alone
    #[arg(required = true, num_args = 2.., value_names = ["MANIFEST", "OUT"])]
    files: Vec<PathBuf>,
    /// How people are shown
    #[arg(long, value_enum, default_value_t = Layout::Grid)]
    layout: Layout,
    /// Pixels of the film
    #[arg(long, value_name = "WIDTHxHEIGHT", default_value = "1280x720", value_parser = compose::size)]
    size: (u32, u32),
    /// Pictures a second
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u32).range(1..=120))]
    fps: u32,
    /// Write over a file that is there
    #[arg(long)]
    force: bool,
}

const COMPOSE_HELP: &str = "\
Several manifests are shown one after the other, without the time between them.
ffmpeg decodes and encodes; it has to be installed (apt install ffmpeg). Without it the exit status is 3.";

#[derive(Debug, Args)]
#[command(after_help = REPAIR_HELP)]
pub(crate) struct RepairOptions {
    /// Files, or manifests, of which all incomplete files are meant
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Repair files that were written to within the last 10 s, too
    #[arg(long)]
    force: bool,
}

const REPAIR_HELP: &str = "\
The new file takes the place of the old one once it is whole. What is torn at the end is left out; index, duration and
sizes are written. Never repair a file that a server still writes.";

/// Why a command ends without having done all.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// What went wrong was said already.
    #[error("")]
    Told,
    #[error("{0}")]
    Other(String),
    #[error(
        "ffmpeg is not installed, or not in PATH: it decodes and encodes what is composed. On Debian and Ubuntu: apt install ffmpeg"
    )]
    NoFfmpeg,
}

impl Recordings {
    /// Does it, and says how it went.
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
