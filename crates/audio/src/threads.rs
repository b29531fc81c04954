//! The audio threads, and the placement of rooms on them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::available_parallelism;
use std::{io, num::NonZero};

use portunus_media::MediaPlane;
use portunus_record::Recorder;
use tokio::sync::mpsc;

use crate::announcement::FileThread;
use crate::clocks::Clocks;
use crate::command::{Command, RoomId};
use crate::room_port::RoomPort;
use crate::splitter::Pool;
use crate::thread::Start;
use crate::thread_port::ThreadPort;
use crate::{
    AudioConfig, AudioError, AudioEvent, AudioRoom, AudioThreadStats, AudioTotals, RoomOptions,
    thread,
};

/// The events of a room that may wait in its channel.
const EVENTS: usize = 1_024;

/// The threads of audio rooms; cheap to clone. They end with the last room and the last clone.
#[derive(Debug, Clone)]
pub struct AudioThreads {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    config: AudioConfig,
    media: MediaPlane,
    recorder: Recorder,
    files: Arc<FileThread>,
    /// Locked briefly, and while a thread starts.
    threads: Mutex<Vec<Arc<ThreadPort>>>,
    pool: Arc<Pool>,
    /// The limit of threads.
    most: usize,
    own: Weak<Shared>,
    next_id: Arc<AtomicU64>,
}

impl AudioThreads {
    /// Starts without threads. They start with rooms.
    pub fn new(config: AudioConfig, media: MediaPlane, recorder: Recorder) -> Self {
        let most = match config.threads {
            0 => available_parallelism().map_or(1, NonZero::get),
            threads => threads,
        };
        let shared = |own: &Weak<Shared>| Shared {
            own: Weak::clone(own),
            most,
            pool: Arc::new(Pool::new(most)),
            config,
            media,
            recorder,
            files: Arc::default(),
            threads: Mutex::default(),
            next_id: Arc::new(AtomicU64::new(1)),
        };
        Self {
            shared: Arc::new_cyclic(shared),
        }
    }

    /// Opens a room on the least busy thread. Its events come out of the receiver. If they are
    /// taken too slowly, the last change of each participant and the end of each announcement still
    /// come later. The receiver ends with the room, also after a fault.
    pub fn open(
        &self,
        options: RoomOptions,
    ) -> Result<(AudioRoom, mpsc::Receiver<AudioEvent>), AudioError> {
        let (events, receiver) = mpsc::channel(EVENTS);
        let thread = self.thread()?;
        let room = RoomId(self.shared.next_id.fetch_add(1, Relaxed));
        thread.rooms.fetch_add(1, Relaxed);
        let media = &self.shared.media;
        let clocks = Clocks {
            opus: media.shared_clock(),
            g711: media.shared_clock(),
        };
        let format = options.format;
        thread.send(
            room,
            Command::Open {
                options,
                clocks,
                events,
            },
        );
        let port = RoomPort {
            room,
            thread,
            media: media.clone(),
            clocks,
            format,
            files: Arc::clone(&self.shared.files),
            recorder: self.shared.recorder.clone(),
        };
        Ok((AudioRoom::new(port), receiver))
    }

    /// Returns the counters of all threads since the start.
    pub fn totals(&self) -> AudioTotals {
        let threads = self.shared.threads.lock();
        let threads = threads.unwrap_or_else(PoisonError::into_inner);
        let mut sum = AudioTotals::default();
        for thread in threads.iter() {
            sum.rooms += thread.rooms.load(Relaxed) as u64;
            sum.participants += thread.participants.load(Relaxed) as u64;
            sum.dropped += thread.dropped.load(Relaxed);
            let load = &thread.load;
            sum.decoded += load.decoded.load(Relaxed);
            sum.relayed += load.relayed.load(Relaxed);
            sum.encoded += load.encoded.load(Relaxed);
            sum.helped += load.helped.load(Relaxed);
            sum.unreturned += load.lost.load(Relaxed);
            sum.ticks += load.ticks.load(Relaxed);
            sum.skipped += load.skipped.load(Relaxed);
            sum.undelivered += load.undelivered.load(Relaxed);
            sum.merged_events += load.merged.load(Relaxed);
        }
        sum
    }

    /// Returns the load of each running thread.
    pub fn thread_stats(&self) -> Vec<AudioThreadStats> {
        let threads = self.shared.threads.lock();
        let threads = threads.unwrap_or_else(PoisonError::into_inner);
        let stats = |(index, thread): (usize, &Arc<ThreadPort>)| {
            let [late_median, late_p99, late_max] = thread.load.lateness();
            AudioThreadStats {
                index,
                rooms: thread.rooms.load(Relaxed),
                participants: thread.participants.load(Relaxed),
                late_median,
                late_p99,
                late_max,
                core_share: thread.load.core_share(),
            }
        };
        threads.iter().enumerate().map(stats).collect()
    }

    /// Returns the thread for a new room: an empty one, else a new one, else the least busy.
    fn thread(&self) -> Result<Arc<ThreadPort>, AudioError> {
        let shared = &self.shared;
        let threads = shared.threads.lock();
        let mut threads = threads.unwrap_or_else(PoisonError::into_inner);
        threads.retain(|thread| !thread.has_ended());
        let load = |it: &&Arc<ThreadPort>| (it.participants.load(Relaxed), it.rooms.load(Relaxed));
        let idlest = threads.iter().min_by_key(load);
        if let Some(idlest) = idlest
            && (threads.len() >= shared.most || idlest.rooms.load(Relaxed) == 0)
        {
            return Ok(Arc::clone(idlest));
        }
        shared.start(&mut threads).map_err(AudioError::Thread)
    }
}

impl Shared {
    /// Starts a thread to help the others, unless the limit is reached or one is starting already.
    fn start_another(&self) {
        let threads = self.threads.lock();
        let mut threads = threads.unwrap_or_else(PoisonError::into_inner);
        if threads.len() < self.most
            && threads.len() == self.pool.threads()
            && let Err(error) = self.start(&mut threads)
        {
            tracing::debug!(%error, "no thread to help with a large room");
        }
    }

    fn start(&self, threads: &mut Vec<Arc<ThreadPort>>) -> io::Result<Arc<ThreadPort>> {
        let port = Arc::new(ThreadPort::new(Arc::clone(&self.next_id)));
        let own = Weak::clone(&self.own);
        thread::spawn(Start {
            index: threads.len(),
            pin: self.config.pin,
            port: Arc::clone(&port),
            media: self.media.clone(),
            pool: Arc::clone(&self.pool),
            start_another: Box::new(move || {
                if let Some(shared) = own.upgrade() {
                    shared.start_another();
                }
            }),
        })?;
        threads.push(Arc::clone(&port));
        Ok(port)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let threads = self.threads.get_mut();
        for port in threads.unwrap_or_else(PoisonError::into_inner) {
            port.close();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use std::time::Duration;

    use portunus_dsp::{AudioCodec, Channels, Encoding, Format, Mixture, SampleRate};
    use tokio::time::timeout;

    use super::*;
    use crate::{Announcement, AnnouncementId, MixRecording, ParticipantId, RecordingFormat};
    use crate::{ParticipantOptions, RecordingId};

    /// A time limit for a busy machine.
    const PATIENCE: Duration = Duration::from_secs(20);

    fn threads(count: usize) -> (AudioThreads, MediaPlane, tempfile::TempDir) {
        let (media, ..) = MediaPlane::detached();
        let config = AudioConfig {
            threads: count,
            pin: false,
        };
        let disk = tempfile::tempdir().unwrap();
        let recorder = Recorder::new(portunus_record::RecorderConfig {
            dir: Some(disk.path().to_owned()),
            keep_free_mb: 0,
            ..Default::default()
        });
        let threads = AudioThreads::new(config, media.clone(), recorder);
        (threads, media, disk)
    }

    fn options() -> RoomOptions {
        RoomOptions {
            format: Format {
                rate: SampleRate::Hz16000,
                channels: Channels::Mono,
            },
            loudest: 8,
            groups: 0,
        }
    }

    fn participant() -> ParticipantOptions {
        ParticipantOptions {
            codec: AudioCodec::Opus,
            muted: false,
            suspended: false,
            immune: false,
            gain: 1.0,
            position: 0.5,
            group: None,
            denoise: false,
            levels: false,
            talk: None,
            encoding: encoding(),
        }
    }

    fn encoding() -> Encoding {
        Encoding {
            codec: AudioCodec::Opus,
            bitrate: None,
            complexity: 1,
            fec: false,
            expected_loss: 0,
        }
    }

    async fn is_there(room: &AudioRoom) -> bool {
        let figures = timeout(PATIENCE, room.participant(ParticipantId(1)));
        figures.await.unwrap().is_some()
    }

    /// Checks that nothing waits for a room that is gone.
    async fn expect_gone(room: &AudioRoom) {
        assert!(!is_there(room).await);
        let what = MixRecording {
            dir: None,
            name: format!("of-{}", room.port.room.0),
            format: RecordingFormat::Wav,
            whose: None,
        };
        let recorded = timeout(PATIENCE, room.record(RecordingId(1), what));
        assert!(matches!(recorded.await.unwrap(), Err(AudioError::Gone)));
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../files/tests/data/tone.opus");
        let announcement = Announcement {
            file: file.into(),
            group: None,
            looping: false,
        };
        let announced = timeout(PATIENCE, room.announce(AnnouncementId(1), announcement));
        assert!(matches!(announced.await.unwrap(), Err(AudioError::Gone)));
    }

    #[tokio::test]
    async fn a_fault_in_a_room_ends_it_and_no_other() {
        let (threads, media, _disk) = threads(1);
        let (faulty, mut told) = threads.open(options()).unwrap();
        let (other, _told) = threads.open(options()).unwrap();
        for room in [&faulty, &other] {
            room.join(ParticipantId(1), participant(), None, None);
            assert!(is_there(room).await);
        }
        let mix = faulty.mix(Mixture::Everyone, encoding(), true);
        faulty.port.fault(false);
        // The end of the events reports the fault.
        assert!(timeout(PATIENCE, told.recv()).await.unwrap().is_none());
        expect_gone(&faulty).await;
        assert!(is_there(&other).await);
        let totals = threads.totals();
        assert_eq!((totals.rooms, totals.participants), (1, 1));
        drop((mix, faulty));
        assert!(media.requested().routes.is_empty());
    }

    #[tokio::test]
    async fn a_thread_that_ends_by_a_fault_keeps_nobody_waiting() {
        let (threads, _media, _disk) = threads(1);
        let (faulty, mut told) = threads.open(options()).unwrap();
        faulty.port.fault(true);
        assert!(timeout(PATIENCE, told.recv()).await.unwrap().is_none());
        expect_gone(&faulty).await;
        // The next room gets a new thread.
        let next = async {
            loop {
                let (next, _told) = threads.open(options()).unwrap();
                next.join(ParticipantId(1), participant(), None, None);
                if is_there(&next).await {
                    break;
                }
            }
        };
        timeout(PATIENCE, next).await.unwrap();
        assert_eq!(threads.thread_stats().len(), 1);
    }
}
