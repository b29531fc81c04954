//! Notices about announcements.

use portunus_audio::{AnnouncementEnd, AnnouncementId};
use portunus_resources::RoomContent;

use super::{Audience, RoomState};

impl RoomState {
    /// Stops a file, if it is played.
    pub(crate) fn stop_file(&mut self, file_id: &str) {
        if self.announcements.stop(file_id, &self.mix) {
            self.announce_change("announcement-stopped", file_id);
        }
    }

    /// Stops all files. Returns the ids of those that were heard.
    pub(crate) fn stop_all_files(&mut self) -> Vec<String> {
        let files = self.announcements.stop_all(&self.mix);
        for file_id in &files {
            self.announce_change("announcement-stopped", file_id);
        }
        files
    }

    pub(super) fn announcement_started(&mut self, number: AnnouncementId) {
        if let Some(file_id) = self.announcements.started(number) {
            self.announce_change("announcement-started", &file_id);
        }
    }

    pub(super) fn announcement_ended(&mut self, number: AnnouncementId, why: &AnnouncementEnd) {
        let Some(ended) = self.announcements.ended(number) else {
            return;
        };
        let file_id = &ended.file_id;
        if let AnnouncementEnd::Failed(error) = why {
            tracing::warn!(room = %self.id(), file_id, "an announcement has ended: {error}");
        }
        if ended.was_playing {
            self.announce_change("announcement-stopped", file_id);
        }
    }

    fn announce_change(&self, what: &str, file_id: &str) {
        self.send(
            Audience::Listening,
            self.message(what).with("file_id", file_id),
        );
        self.notify(None, || self.notice(what).with("file_id", file_id).into());
    }
}
