//! `portunus recordings convert`: recordings into other files.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use portunus_files::container::Container;
use portunus_files::convert::{
    ConvertError, Converted, Recordings, to_container, to_ogg_opus, to_pcap, to_subtitles,
};

use portunus_files::FileError;
use portunus_files::summary::{Depth, Summary};

use super::failure::Failure;
use super::files::{self, NewFiles, failed};
use super::progress::Progress;
use super::{text, wav};

#[derive(Debug, Args)]
#[command(after_help = CONVERT_HELP)]
pub(crate) struct ConvertOptions {
    /// .mjr files of audio, video and data that were recorded together, or a manifest of one
    /// participant; the last name is that of the new file
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

/// The type of the new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Container(Container),
    OggOpus,
    Wav,
    Subtitles,
    Pcap,
}

impl Target {
    fn of(path: &Path) -> Result<Self, Failure> {
        Ok(match files::extension(path).as_str() {
            "webm" => Target::Container(Container::WebM),
            "mkv" => Target::Container(Container::Matroska),
            "mp4" => Target::Container(Container::Mp4),
            "opus" | "ogg" => Target::OggOpus,
            "wav" => Target::Wav,
            "srt" => Target::Subtitles,
            "pcap" => Target::Pcap,
            _ => {
                let why = "its name has to end in .webm, .mkv, .mp4, .opus, .wav, .srt or .pcap";
                return Err(failed(path, why));
            }
        })
    }
}

pub(super) fn run(options: &ConvertOptions) -> Result<(), Failure> {
    let Some((out, inputs)) = options.files.split_last() else {
        return Err(Failure::Other("nothing to convert".to_owned()));
    };
    let target = Target::of(out)?;
    files::check_free(out, options.force)?;
    let inputs = recordings_of(inputs, options.participant.as_deref())?;
    let inputs = without_empty(inputs)?;
    let mut recordings = open(&inputs)?;
    let bar = Progress::new("converting");
    let mut progress = |done| bar.set(done);
    let told = |error| failure(&inputs, out, error);
    let (converted, names) = match target {
        Target::Container(container) => {
            let mut sink = NewFiles::new(out, options.force);
            let done = to_container(&mut recordings, container, &mut sink, &mut progress);
            let converted = match (done, sink.failure.take()) {
                (_, Some(failure)) => return Err(failure),
                (done, None) => done.map_err(told)?,
            };
            (converted, sink.keep()?)
        }
        Target::Wav => {
            let mut file = files::temporary(out)?;
            let done = wav::write(&mut recordings, file.as_file_mut(), &mut progress);
            let converted = done.map_err(told)?;
            files::keep(file, out)?;
            (converted, vec![out.clone()])
        }
        Target::OggOpus | Target::Subtitles | Target::Pcap => {
            let file = files::temporary(out)?;
            let mut buffered = BufWriter::new(file.as_file());
            let done = match target {
                Target::OggOpus => to_ogg_opus(&mut recordings, &mut buffered, &mut progress),
                Target::Subtitles => to_subtitles(&mut recordings, &mut buffered, &mut progress),
                _ => to_pcap(&mut recordings, &mut buffered, &mut progress),
            };
            let converted = done.map_err(told)?;
            buffered.flush().map_err(|error| failed(out, error))?;
            drop(buffered);
            files::keep(file, out)?;
            (converted, vec![out.clone()])
        }
    };
    drop(bar);
    report(&inputs, &recordings, &converted, &names);
    Ok(())
}

/// Opens recordings that belong together.
pub(super) fn open(inputs: &[PathBuf]) -> Result<Recordings, Failure> {
    let mut opened = Vec::new();
    for path in inputs {
        let named = |error: std::io::Error| failed(path, error);
        let file = File::open(path).map_err(named)?;
        if file.metadata().map_err(named)?.is_dir() {
            return Err(failed(path, "it is a folder"));
        }
        if matches!(
            files::extension(path).as_str(),
            "webm" | "mkv" | "mp4" | "opus" | "ogg"
        ) {
            let why =
                "it plays as it is; only .mjr files are converted (ffmpeg converts the others)";
            return Err(failed(path, why));
        }
        opened.push(file);
    }
    Recordings::open(opened).map_err(|error| failure(inputs, Path::new(""), error))
}

/// Returns the files without empty ones, which silent publishers and other servers leave behind.
fn without_empty(inputs: Vec<PathBuf>) -> Result<Vec<PathBuf>, Failure> {
    let is_empty = |path: &PathBuf| {
        let summary = Summary::of(path, Depth::Ends);
        matches!(summary, Err(FileError::Empty))
    };
    let (empty, found): (Vec<_>, Vec<_>) = inputs.into_iter().partition(is_empty);
    for path in &empty {
        eprintln!(
            "portunus: left out: {}: there is nothing in it",
            path.display()
        );
    }
    match found.is_empty() {
        true => Err(Failure::Other("there is nothing to convert".to_owned())),
        false => Ok(found),
    }
}

/// Returns the recordings, with those that a manifest names in its place.
fn recordings_of(inputs: &[PathBuf], participant: Option<&str>) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    for path in inputs {
        if files::extension(path) != "json" {
            found.push(path.clone());
            continue;
        }
        let manifest = files::manifest(path)?;
        let is_meant = |id: &str| participant.is_none_or(|meant| meant == id);
        let with_files = manifest.participants.iter();
        let with_files = with_files.filter(|it| is_meant(&it.id) && !it.files.is_empty());
        let meant: Vec<_> = with_files.collect();
        let meant = match *meant.as_slice() {
            [] => return Err(failed(path, "it names no file of such a participant")),
            [meant] => meant,
            _ => {
                let ids: Vec<_> = meant.iter().map(|it| it.id.as_str()).collect();
                let ids = ids.join(", ");
                return Err(failed(
                    path,
                    format!("say whose files: --participant {ids}"),
                ));
            }
        };
        let before = found.len();
        for file in meant.files.iter().filter(|file| file.format == "mjr") {
            found.push(files::named(path, &file.file)?);
        }
        if found.len() == before {
            return Err(failed(
                path,
                "it names no .mjr file: what it names plays as it is",
            ));
        }
    }
    Ok(found)
}

/// Returns the error with the name of its file.
fn failure(inputs: &[PathBuf], out: &Path, error: ConvertError) -> Failure {
    match &error {
        ConvertError::Input { index, error } => named_input(inputs, *index, error),
        ConvertError::Encrypted(index) => {
            let why = "it is encrypted end to end: only its receivers have the keys";
            named_input(inputs, *index, why)
        }
        ConvertError::UnknownCodec { index, codec } => {
            named_input(inputs, *index, format!("{codec} is not converted"))
        }
        ConvertError::Write(error) => failed(out, format!("cannot be written: {error}")),
        _ => Failure::Other(error.to_string()),
    }
}

fn named_input(inputs: &[PathBuf], index: usize, why: impl std::fmt::Display) -> Failure {
    match inputs.get(index) {
        Some(path) => failed(path, why),
        None => Failure::Other(why.to_string()),
    }
}

fn report(inputs: &[PathBuf], recordings: &Recordings, converted: &Converted, names: &[PathBuf]) {
    for name in names {
        println!("{}", name.display());
    }
    let mut line = format!("  {}", text::duration(converted.duration));
    if converted.lost > 0 {
        line += &format!(", {} packets are missing in the recordings", converted.lost);
    }
    if converted.gaps > 0 {
        line += &format!(", {} gaps", converted.gaps);
    }
    println!("{line}");
    for damage in recordings.damage() {
        if let Some(path) = inputs.get(damage.index) {
            println!(
                "  {}: read up to its damage: {}",
                path.display(),
                damage.why
            );
        }
    }
}
