//! Announcements: files that a room hears. A thread of its own reads them ahead of the rooms.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::{io, thread};

use crossbeam_queue::ArrayQueue;
use portunus_dsp::{AnnouncementSource, AnnouncementState, NextPacket};
use portunus_files::{Codec, FileError, MediaFile, OpenOptions};
use portunus_rtp::Header;

use crate::{AnnouncementEnd, AnnouncementId, AudioError, AudioEvent};

/// An announcement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announcement {
    /// The file: Ogg with Opus. The caller has checked that it may be read.
    pub file: PathBuf,
    /// The group that it belongs to, or `None`. The whole room hears it in either case.
    pub group: Option<usize>,
    /// Starts again at the end, until it is stopped.
    pub looping: bool,
}

/// The packets of a file that are read ahead: some seconds.
const AHEAD: usize = 256;
/// Reading continues when fewer packets are left.
const LOW: usize = 128;

/// The thread that reads files. It starts with the first file, and ends with this.
#[derive(Debug, Default)]
pub(crate) struct FileThread {
    requests: Mutex<Option<Sender<Arc<Reading>>>>,
}

/// A file that is being read, shared by the reading thread and a room.
#[derive(Debug)]
pub(crate) struct Reading {
    /// Locked by the reading thread only.
    file: Mutex<MediaFile>,
    packets: ArrayQueue<Vec<u8>>,
    /// Used buffers.
    spare: ArrayQueue<Vec<u8>>,
    /// Whether the thread was asked to read on.
    asked: AtomicBool,
    /// Whether no more packets come. An error is known before this is set.
    ended: AtomicBool,
    wrong: OnceLock<Arc<AudioError>>,
}

/// The room's side of a file.
#[derive(Debug)]
pub(crate) struct FileReader {
    reading: Arc<Reading>,
    requests: Sender<Arc<Reading>>,
}

impl FileThread {
    /// Opens a file and reads its start. It blocks.
    pub(crate) fn open(&self, path: &Path, looping: bool) -> Result<FileReader, AudioError> {
        let options = OpenOptions {
            audio: true,
            video: false,
            looping,
        };
        let file = MediaFile::open(path, &options)?;
        let track = file.tracks().first();
        if track.is_none_or(|track| track.codec != Codec::Opus) {
            return Err(AudioError::NotOpus);
        }
        let mut reading = Reading {
            file: Mutex::new(file),
            packets: ArrayQueue::new(AHEAD),
            spare: ArrayQueue::new(AHEAD),
            asked: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            wrong: OnceLock::new(),
        };
        reading.read();
        if reading.packets.is_empty()
            && let Some(error) = reading.wrong.take().and_then(Arc::into_inner)
        {
            return Err(error);
        }
        Ok(FileReader {
            requests: self.requests().map_err(AudioError::Thread)?,
            reading: Arc::new(reading),
        })
    }

    fn requests(&self) -> io::Result<Sender<Arc<Reading>>> {
        let requests = self.requests.lock();
        let mut requests = requests.unwrap_or_else(PoisonError::into_inner);
        if let Some(requests) = &*requests {
            return Ok(requests.clone());
        }
        let (sender, receiver) = channel();
        let builder = thread::Builder::new().name("audio-files".to_owned());
        builder.spawn(move || read_all(&receiver))?;
        Ok(requests.insert(sender).clone())
    }
}

/// Reads files as requested.
fn read_all(requests: &Receiver<Arc<Reading>>) {
    while let Ok(reading) = requests.recv() {
        // If nobody else holds it, it was stopped.
        if Arc::strong_count(&reading) > 1 {
            reading.read();
        }
    }
}

impl Reading {
    /// Reads until enough packets are ready, or the file ends.
    fn read(&self) {
        self.asked.store(false, Ordering::Release);
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        while !self.packets.is_full() && !self.ended.load(Ordering::Relaxed) {
            match file.next() {
                Some(Ok(packet)) => {
                    let mut buffer = self.spare.pop().unwrap_or_default();
                    buffer.clear();
                    if let Ok(header) = Header::parse(packet.bytes) {
                        buffer.extend_from_slice(header.payload(packet.bytes));
                    }
                    // There is room, because only this thread adds packets.
                    let _ = self.packets.push(buffer);
                }
                Some(Err(error)) => {
                    let _ = self.wrong.set(Arc::new(error.into()));
                    self.ended.store(true, Ordering::Release);
                }
                None => self.ended.store(true, Ordering::Release),
            }
        }
    }
}

impl AnnouncementSource for FileReader {
    fn next_packet(&mut self, packet: &mut Vec<u8>) -> NextPacket {
        let reading = &self.reading;
        // The end is set after the last packet was added.
        let ended = reading.ended.load(Ordering::Acquire);
        let next = reading.packets.pop();
        if !ended && reading.packets.len() < LOW && !reading.asked.swap(true, Ordering::AcqRel) {
            // The thread outlives all files.
            let _ = self.requests.send(Arc::clone(reading));
        }
        match next {
            Some(bytes) => {
                packet.extend_from_slice(&bytes);
                let _ = reading.spare.push(bytes);
                NextPacket::Packet
            }
            None if !ended => NextPacket::NotYet,
            None if reading.wrong.get().is_some() => NextPacket::Broken,
            None => NextPacket::End,
        }
    }
}

/// The announcements of a room, for its events.
#[derive(Debug, Default)]
pub(crate) struct Announcements {
    all: HashMap<AnnouncementId, Announced>,
}

#[derive(Debug)]
struct Announced {
    reading: Arc<Reading>,
    stopped: bool,
}

impl Announcements {
    /// Starts an announcement, and returns its packets for the room.
    pub(crate) fn begin(
        &mut self,
        announcement: AnnouncementId,
        file: FileReader,
    ) -> Box<dyn AnnouncementSource> {
        // The number is unused, or the room refuses it.
        self.all.entry(announcement).or_insert_with(|| Announced {
            reading: Arc::clone(&file.reading),
            stopped: false,
        });
        Box::new(file)
    }

    /// Forgets an announcement that was refused.
    pub(crate) fn forget(&mut self, announcement: AnnouncementId) {
        self.all.remove(&announcement);
    }

    pub(crate) fn has(&self, announcement: AnnouncementId) -> bool {
        self.all.contains_key(&announcement)
    }

    pub(crate) fn stop(&mut self, announcement: AnnouncementId) {
        if let Some(announced) = self.all.get_mut(&announcement) {
            announced.stopped = true;
        }
    }

    /// Returns the event about a change.
    pub(crate) fn changed(
        &mut self,
        announcement: AnnouncementId,
        state: AnnouncementState,
    ) -> Option<AudioEvent> {
        if state == AnnouncementState::Started {
            return Some(AudioEvent::AnnouncementStarted(announcement));
        }
        let announced = self.all.remove(&announcement)?;
        let wrong = announced.reading.wrong.get().map(Arc::clone);
        let why = match (wrong, state) {
            _ if announced.stopped => AnnouncementEnd::Stopped,
            (Some(error), _) => AnnouncementEnd::Failed(error),
            (None, AnnouncementState::Failed) => {
                AnnouncementEnd::Failed(Arc::new(FileError::NoPackets.into()))
            }
            (None, _) => AnnouncementEnd::Played,
        };
        Some(AudioEvent::AnnouncementEnded { announcement, why })
    }
}
