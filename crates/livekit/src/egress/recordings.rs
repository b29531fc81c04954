//! The files of an egress while they are recorded.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use portunus_media::MediaPlane;
use portunus_record::{
    Completed, Format, JointRecording, JointSpec, Outcome, Participant, RecordedSession, Recorder,
    SessionSpec, file_safe,
};
use portunus_room::PersonId;
use tokio::time::sleep;

use super::source::SourceTrack;
use crate::plugin::PACKAGE;

/// How long the manifest may take until it names the ends of all files.
const MANIFEST_LIMIT: Duration = Duration::from_secs(10);

/// What is recorded: all tracks in one file, or those of each participant in one.
#[derive(Debug)]
pub(super) struct Recordings {
    recorder: Recorder,
    media: MediaPlane,
    /// The name of the file, or of the folder for files of participants.
    name: String,
    format: Format,
    /// The session of the files of participants. `None` for one file of all tracks.
    session: Option<RecordedSession>,
    /// The recordings by participant. One file of all tracks belongs to nobody.
    by_owner: HashMap<Option<PersonId>, JointRecording>,
    outcomes: Vec<Outcome>,
    done: Arc<Mutex<Vec<Completed>>>,
}

/// The files of an egress once they are complete.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Recorded {
    pub(super) files: Vec<Completed>,
    /// The manifest of the files of participants.
    pub(super) manifest: Option<PathBuf>,
}

impl Recordings {
    /// Returns recordings of all tracks in one file.
    pub(super) fn together(
        recorder: Recorder,
        media: MediaPlane,
        name: String,
        format: Format,
    ) -> Self {
        Recordings {
            recorder,
            media,
            name,
            format,
            session: None,
            by_owner: HashMap::new(),
            outcomes: Vec::new(),
            done: Arc::default(),
        }
    }

    /// Returns recordings with a file for each participant of a room, in the folder `name`.
    pub(super) fn of_room(recorder: Recorder, media: MediaPlane, name: String, room: &str) -> Self {
        let session = recorder.session(SessionSpec {
            plugin: PACKAGE,
            dir: None,
            name: format!("{name}/room"),
            room: Some(room.to_owned()),
            description: None,
        });
        Recordings {
            session: Some(session),
            ..Self::together(recorder, media, name, Format::Matroska)
        }
    }

    /// Records these tracks, and no others any more.
    pub(super) fn follow(&mut self, tracks: &[SourceTrack]) -> Result<(), String> {
        for recording in self.by_owner.values_mut() {
            let is_wanted = |key: &str| tracks.iter().any(|track| track.sid == key);
            let gone: Vec<String> = recording
                .keys()
                .filter(|key| !is_wanted(key))
                .map(str::to_owned)
                .collect();
            for key in gone {
                recording.remove(&key);
            }
        }
        let mut by_owner: HashMap<Option<PersonId>, Vec<&SourceTrack>> = HashMap::new();
        for track in tracks {
            let owner = self.session.is_some().then(|| track.owner.clone());
            by_owner.entry(owner).or_default().push(track);
        }
        for (owner, tracks) in by_owner {
            match self.by_owner.get_mut(&owner) {
                Some(recording) => {
                    for track in tracks {
                        let is_in = recording.keys().any(|key| key == track.sid);
                        match is_in {
                            true => recording.set_open(&track.sid, track.spec.open),
                            false => recording.add(track.spec.clone()),
                        }
                    }
                }
                None => self.begin(owner, &tracks)?,
            }
        }
        Ok(())
    }

    fn begin(&mut self, owner: Option<PersonId>, tracks: &[&SourceTrack]) -> Result<(), String> {
        let first = tracks.first();
        let of = self
            .session
            .as_ref()
            .zip(first)
            .map(|(session, track)| Participant {
                session: session.clone(),
                id: track.identity.clone(),
                display: track.display.clone(),
            });
        let name = match (&of, first) {
            (Some(of), Some(track)) => {
                format!("{}/{}-{}", self.name, file_safe(&of.id), track.sid)
            }
            _ => self.name.clone(),
        };
        let spec = JointSpec {
            dir: None,
            name,
            format: self.format,
            of,
            tracks: tracks.iter().map(|track| track.spec.clone()).collect(),
        };
        let started = self.recorder.joint(&self.media, spec);
        let mut recording = started.map_err(|error| error.to_string())?;
        let done = self.done.clone();
        recording.on_complete(move |completed| {
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            done.push(completed.clone());
        });
        self.by_owner.insert(owner, recording);
        Ok(())
    }

    /// Returns the outcomes of files that have ended already.
    pub(super) fn ended(&self) -> Vec<Outcome> {
        let ended = self.by_owner.values().filter(|it| it.is_over());
        ended.map(JointRecording::outcome).collect()
    }

    /// Ends the files, and waits until they are complete.
    pub(super) async fn finish(mut self) -> Result<Recorded, String> {
        for (_, recording) in self.by_owner.drain() {
            self.outcomes.push(recording.outcome());
        }
        let mut failed = None;
        for outcome in self.outcomes {
            if let Err(error) = outcome.ended().await {
                failed.get_or_insert_with(|| error.to_string());
            }
        }
        drop(self.session);
        let files = {
            let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *done)
        };
        match failed {
            Some(error) => Err(error),
            None => {
                let manifest = files.iter().find_map(|file| file.manifest.clone());
                if let Some(manifest) = &manifest {
                    complete(manifest.clone(), files.len()).await?;
                }
                Ok(Recorded { files, manifest })
            }
        }
    }
}

/// Waits until a manifest names the ends of as many files.
async fn complete(manifest: PathBuf, files: usize) -> Result<(), String> {
    let waited = tokio::time::timeout(MANIFEST_LIMIT, async {
        while ended_files(&manifest).await < files {
            sleep(Duration::from_millis(50)).await;
        }
    });
    let late = |_| "the manifest of the recorded files is not written".to_owned();
    waited.await.map_err(late)
}

/// Returns the number of files in a manifest that have ended.
async fn ended_files(manifest: &Path) -> usize {
    let Ok(bytes) = tokio::fs::read(manifest).await else {
        return 0;
    };
    let read: Result<serde_json::Value, _> = serde_json::from_slice(&bytes);
    let participants = read
        .ok()
        .and_then(|it| it.get("participants")?.as_array().cloned());
    let participants = participants.into_iter().flatten();
    let files = participants.filter_map(|it| it.get("files")?.as_array().cloned());
    let ended = |file: &serde_json::Value| file.get("end").is_some_and(|end| !end.is_null());
    files.flatten().filter(ended).count()
}
