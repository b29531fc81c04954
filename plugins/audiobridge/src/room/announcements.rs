//! Files that are played to a room.

use std::collections::BTreeMap;

use portunus_audio::{AnnouncementEnd, AnnouncementId};
use portunus_core::Object;
use portunus_resources::RoomContent;
use serde_json::Value;

use super::{Audience, RoomState};
use crate::refusal::Refusal;

/// Files that a room plays at the same time at most: each is decoded.
const MAX_ANNOUNCEMENTS: usize = 32;

/// The files that a room plays, or is about to.
#[derive(Debug, Default)]
pub(super) struct Announcements {
    by_file: BTreeMap<String, Announced>,
    next: u64,
}

/// A file that is played.
#[derive(Debug, Clone)]
pub(crate) struct Announced {
    pub(crate) number: AnnouncementId,
    filename: String,
    looping: bool,
    /// Its first frame was heard.
    playing: bool,
}

impl Announcements {
    fn numbered(&mut self, number: AnnouncementId) -> Option<(&String, &mut Announced)> {
        let mut all = self.by_file.iter_mut();
        all.find(|(_, announced)| announced.number == number)
    }

    /// Forgets all of them.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = AnnouncementId> + use<> {
        let all = std::mem::take(&mut self.by_file).into_values();
        all.map(|announced| announced.number)
    }
}

impl RoomState {
    /// Takes the id of a file that is to be played.
    pub(crate) fn announce(
        &mut self,
        file_id: &str,
        filename: &str,
        looping: bool,
    ) -> Result<AnnouncementId, Refusal> {
        if self.announcements.by_file.contains_key(file_id) {
            return Err(Refusal::FileExists(file_id.to_owned()));
        }
        if self.announcements.by_file.len() >= MAX_ANNOUNCEMENTS {
            return Err(Refusal::Unknown(
                "A room plays 32 files at a time at most".to_owned(),
            ));
        }
        self.announcements.next += 1;
        let number = AnnouncementId(self.announcements.next);
        let announced = Announced {
            number,
            filename: filename.to_owned(),
            looping,
            playing: false,
        };
        self.announcements
            .by_file
            .insert(file_id.to_owned(), announced);
        Ok(number)
    }

    /// Whether a file that was to be played still is.
    pub(crate) fn has_announcement(&mut self, number: AnnouncementId) -> bool {
        !self.destroyed && self.announcements.numbered(number).is_some()
    }

    /// A file cannot be played: nobody was told of it.
    pub(crate) fn forget_announcement(&mut self, number: AnnouncementId) {
        self.announcements
            .by_file
            .retain(|_, announced| announced.number != number);
    }

    /// Whether a file is heard.
    pub(crate) fn is_playing(&self, file_id: &str) -> bool {
        let announced = self.announcements.by_file.get(file_id);
        announced.is_some_and(|announced| announced.playing)
    }

    /// Plays a file no more; false if it is not played.
    pub(crate) fn stop_file(&mut self, file_id: &str) -> bool {
        let Some(announced) = self.announcements.by_file.remove(file_id) else {
            return false;
        };
        self.sound.stop_announcement(announced.number);
        if announced.playing {
            self.tell_announcement("announcement-stopped", file_id);
        }
        true
    }

    /// Plays no file any more; gives those that were heard.
    pub(crate) fn stop_all_files(&mut self) -> Vec<String> {
        let mut files: Vec<String> = self.announcements.by_file.keys().cloned().collect();
        files.retain(|file| {
            let playing = self.is_playing(file);
            self.stop_file(file);
            playing
        });
        files
    }

    /// All files, as clients are told of them.
    pub(crate) fn announcements(&self) -> Vec<Value> {
        let all = self.announcements.by_file.iter();
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

    pub(super) fn announcement_started(&mut self, number: AnnouncementId) {
        let Some((file_id, announced)) = self.announcements.numbered(number) else {
            return;
        };
        if std::mem::replace(&mut announced.playing, true) {
            return;
        }
        let file_id = file_id.clone();
        self.tell_announcement("announcement-started", &file_id);
    }

    pub(super) fn announcement_ended(&mut self, number: AnnouncementId, why: &AnnouncementEnd) {
        let Some((file_id, announced)) = self.announcements.numbered(number) else {
            return;
        };
        let (file_id, playing) = (file_id.clone(), announced.playing);
        if let AnnouncementEnd::Failed(error) = why {
            tracing::warn!(room = %self.id, file_id, "an announcement has ended: {error}");
        }
        self.announcements.by_file.remove(&file_id);
        if playing {
            self.tell_announcement("announcement-stopped", &file_id);
        }
    }

    fn tell_announcement(&self, what: &str, file_id: &str) {
        self.tell(
            Audience::Listening,
            self.message(what).with("file_id", file_id),
        );
        self.notify(None, || self.notice(what).with("file_id", file_id).into());
    }
}
