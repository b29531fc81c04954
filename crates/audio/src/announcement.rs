//! Announcements: files that a room hears. A thread that may block reads them ahead of the rooms.

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

/// What is announced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announcement {
    /// The file: Ogg with Opus. Whoever asks has to have checked that it may be read.
    pub file: PathBuf,
    /// The group that it belongs to; none: no group, all hear it all the same.
    pub group: Option<usize>,
    /// From the start again at the end, until it is stopped.
    pub looping: bool,
}

/// Packets of a file that are read ahead: some seconds.
const AHEAD: usize = 256;
/// With fewer than this, more are read.
const LOW: usize = 128;

/// The thread that reads files, once there was one to be read. It ends with this.
#[derive(Debug, Default)]
pub(crate) struct FileThread {
    requests: Mutex<Option<Sender<Arc<Reading>>>>,
}

/// A file that is read, as the thread that reads has it in common with a room.
#[derive(Debug)]
pub(crate) struct Reading {
    /// Held by the thread that reads, and nobody else.
    file: Mutex<MediaFile>,
    packets: ArrayQueue<Vec<u8>>,
    /// Buffers that were used.
    spare: ArrayQueue<Vec<u8>>,
    /// It is to be read on already.
    asked: AtomicBool,
    /// Nothing more comes. What is wrong with the file, if something is, is known before this.
    ended: AtomicBool,
    wrong: OnceLock<Arc<AudioError>>,
}

/// A file, as a room has it.
#[derive(Debug)]
pub(crate) struct FileReader {
    reading: Arc<Reading>,
    requests: Sender<Arc<Reading>>,
}

impl FileThread {
    /// Opens a file and reads the start of it. It blocks.
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

/// Reads on whatever it is asked to.
fn read_all(requests: &Receiver<Arc<Reading>>) {
    while let Ok(reading) = requests.recv() {
        // Nobody else has it any more: it was stopped.
        if Arc::strong_count(&reading) > 1 {
            reading.read();
        }
    }
}

impl Reading {
    /// Reads until enough is there, or the file is over.
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
                    // There is room: nobody else puts anything in.
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
        // It ends behind what was put in before.
        let ended = reading.ended.load(Ordering::Acquire);
        let next = reading.packets.pop();
        if !ended && reading.packets.len() < LOW && !reading.asked.swap(true, Ordering::AcqRel) {
            // The thread ends after all that can ask it.
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

/// The announcements of a room, for what is told of them.
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
    /// One begins; gives what the room hears.
    pub(crate) fn begin(
        &mut self,
        announcement: AnnouncementId,
        file: FileReader,
    ) -> Box<dyn AnnouncementSource> {
        // Of the same number there is none, or the room refuses.
        self.all.entry(announcement).or_insert_with(|| Announced {
            reading: Arc::clone(&file.reading),
            stopped: false,
        });
        Box::new(file)
    }

    /// It was refused.
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

    /// What is to be told.
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
