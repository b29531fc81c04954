//! Finding and opening the files to play.

use std::path::Path;

use portunus_files::{FileError, Playback};
use portunus_player::Hold;

use crate::complete_recording::{self, Viewing};
use crate::nfo::MediaFiles;
use crate::player::What;
use crate::refusal::Refusal;
use crate::requests::Play;
use crate::shared::Shared;

/// An opened recording.
pub(crate) struct Opened {
    pub(crate) what: What,
    pub(crate) playback: Playback,
    /// A warning about the files that cannot be played.
    pub(crate) warning: Option<String>,
}

/// The extensions of containers.
const CONTAINERS: [&str; 3] = ["webm", "mkv", "mp4"];

/// Finds and opens the files.
pub(crate) async fn open(shared: &Shared, play: Play) -> Result<Opened, Refusal> {
    let (shelf, opening) = (&shared.shelf, &shared.opening);
    match play {
        Play::Recording(id) => {
            let Some(recorded) = shelf.get(id).await else {
                let place = shared.recordings.find(id).await;
                return Err(place.map_or(Refusal::NoSuchRecording, Refusal::Elsewhere));
            };
            let viewing = Viewing::new(recorded);
            let (folder, files) = (shelf.folder().to_owned(), viewing.0.nfo.files.clone());
            let opened = opening.open(move || complete_recording::open(&folder, &files));
            let (playback, warning) = opened.await??;
            Ok(Opened {
                what: What::Recording(viewing),
                playback,
                warning,
            })
        }
        Play::File(name) => {
            let (all, named) = (shared.all.clone(), name.clone());
            let opened = opening.open(move || open_named(&all, &named)).await?;
            let (playback, warning) = match opened {
                Err(FileError::Io(_) | FileError::Outside(_) | FileError::Path(_)) => {
                    return Err(Refusal::NoSuchRecording);
                }
                opened => opened?,
            };
            Ok(Opened {
                what: What::File(name, Hold::default()),
                playback,
                warning,
            })
        }
    }
}

/// Opens a recording of another plugin, by the name of a file or by the common start of its files'
/// names.
fn open_named(all: &Path, name: &str) -> Result<(Playback, Option<String>), FileError> {
    let found = |file: String| complete_recording::find(all, &file).is_ok().then_some(file);
    let files = match found(name.to_owned()) {
        Some(whole) => MediaFiles {
            video: Some(whole),
            ..MediaFiles::default()
        },
        None => {
            let part = |medium: &str| found(format!("{name}-{medium}.mjr"));
            let mut named = CONTAINERS.iter().map(|ending| format!("{name}.{ending}"));
            let (audio, video) = (part("audio"), part("video"));
            // Files that cannot be played together with a container cause a warning.
            let (audio, video) = match named.find_map(found) {
                Some(container) => (Some(container), video.or(audio)),
                None => (audio, video),
            };
            MediaFiles {
                audio,
                video,
                data: part("data"),
                parts: Vec::new(),
            }
        }
    };
    if files == MediaFiles::default() {
        return Err(FileError::Outside(name.to_owned()));
    }
    complete_recording::open(all, &files)
}
