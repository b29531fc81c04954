//! The access of a room's handle to its thread.

use std::sync::Arc;

use portunus_media::{IngestId, MediaPlane};
use portunus_record::Recorder;

use crate::Format;
use crate::announcement::FileThread;
use crate::clocks::Clocks;
use crate::command::{Command, RoomId};
use crate::thread_port::ThreadPort;

/// The access of a room's handle to its thread, the media plane and the disk.
#[derive(Debug)]
pub(crate) struct RoomPort {
    pub(crate) room: RoomId,
    pub(crate) thread: Arc<ThreadPort>,
    pub(crate) media: MediaPlane,
    pub(crate) clocks: Clocks,
    pub(crate) format: Format,
    pub(crate) files: Arc<FileThread>,
    pub(crate) recorder: Recorder,
}

impl RoomPort {
    pub(crate) fn send(&self, command: Command) {
        self.thread.send(self.room, command);
    }

    #[cfg(test)]
    pub(crate) fn fault(&self, of_thread: bool) {
        self.send(Command::Fault { of_thread });
    }

    pub(crate) fn drop_mix(&self, id: u64, ingest: IngestId) {
        self.send(Command::DropMix { id });
        // Nobody waits for its end.
        let _ = self.media.remove_ingest(ingest);
    }
}
