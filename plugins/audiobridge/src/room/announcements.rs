//! Files that are played to a room.

use std::collections::BTreeMap;

use portunus_audio::AnnouncementId;
use portunus_core::Object;
use serde_json::Value;

use super::mix::Mix;
use crate::refusal::Refusal;

/// The limit of files that a room plays at the same time: each is decoded.
const MAX_ANNOUNCEMENTS: usize = 32;

/// The files that a room plays, or will play.
#[derive(Debug, Default)]
pub(crate) struct Announcements {
    by_file: BTreeMap<String, Announced>,
    /// The number of the last one.
    last: u64,
}

/// A file that is played.
#[derive(Debug)]
struct Announced {
    number: AnnouncementId,
    filename: String,
    looping: bool,
    /// Whether its first frame was heard.
    playing: bool,
}

/// A file that has ended.
#[derive(Debug)]
pub(super) struct EndedAnnouncement {
    pub(super) file_id: String,
    pub(super) was_playing: bool,
}

impl Announcements {
    fn numbered(&mut self, number: AnnouncementId) -> Option<(&String, &mut Announced)> {
        let mut all = self.by_file.iter_mut();
        all.find(|(_, announced)| announced.number == number)
    }

    /// Takes the id of a file that is to be played.
    pub(crate) fn add(
        &mut self,
        file_id: &str,
        filename: &str,
        looping: bool,
    ) -> Result<AnnouncementId, Refusal> {
        if self.by_file.contains_key(file_id) {
            return Err(Refusal::FileExists(file_id.to_owned()));
        }
        if self.by_file.len() >= MAX_ANNOUNCEMENTS {
            return Err(Refusal::Unknown(
                "A room plays 32 files at a time at most".to_owned(),
            ));
        }
        self.last += 1;
        let number = AnnouncementId(self.last);
        let announced = Announced {
            number,
            filename: filename.to_owned(),
            looping,
            playing: false,
        };
        self.by_file.insert(file_id.to_owned(), announced);
        Ok(number)
    }

    /// Whether a file was not stopped yet.
    pub(crate) fn has(&mut self, number: AnnouncementId) -> bool {
        self.numbered(number).is_some()
    }

    /// Forgets a file that cannot be played. Nobody was told of it.
    pub(crate) fn forget(&mut self, number: AnnouncementId) {
        self.by_file
            .retain(|_, announced| announced.number != number);
    }

    /// Whether a file is heard.
    pub(crate) fn is_playing(&self, file_id: &str) -> bool {
        let announced = self.by_file.get(file_id);
        announced.is_some_and(|announced| announced.playing)
    }

    /// Stops a file. Returns whether it was heard.
    pub(super) fn stop(&mut self, file_id: &str, mix: &Mix) -> bool {
        let announced = self.by_file.remove(file_id);
        announced.is_some_and(|announced| {
            mix.stop_announcement(announced.number);
            announced.playing
        })
    }

    /// Stops all files. Returns the ids of those that were heard.
    pub(super) fn stop_all(&mut self, mix: &Mix) -> Vec<String> {
        let mut files: Vec<String> = self.by_file.keys().cloned().collect();
        files.retain(|file_id| self.stop(file_id, mix));
        files
    }

    /// Notes that a file is heard now. Returns its id if that is news.
    pub(super) fn started(&mut self, number: AnnouncementId) -> Option<String> {
        let (file_id, announced) = self.numbered(number)?;
        let is_news = !std::mem::replace(&mut announced.playing, true);
        is_news.then(|| file_id.clone())
    }

    /// Removes a file that has ended.
    pub(super) fn ended(&mut self, number: AnnouncementId) -> Option<EndedAnnouncement> {
        let (file_id, announced) = self.numbered(number)?;
        let ended = EndedAnnouncement {
            file_id: file_id.clone(),
            was_playing: announced.playing,
        };
        self.by_file.remove(&ended.file_id);
        Some(ended)
    }

    /// Describes all files to clients.
    pub(crate) fn list(&self) -> Vec<Value> {
        let all = self.by_file.iter();
        let entry = |(file_id, announced): (&String, &Announced)| {
            Object::new()
                .with("file_id", file_id.as_str())
                .with("filename", announced.filename.as_str())
                .with("playing", announced.playing)
                .with("loop", announced.looping)
                .into()
        };
        all.map(entry).collect()
    }
}
