//! The plugin's side of a file that several tracks share.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use portunus_media::{MediaPlane, RouteId, RouteOptions, Tap, TapOptions};
use portunus_sdp::CodecName;
use tokio::sync::watch;

use super::part::{MOST_TRACKS, NewPart, Part};
use super::writer::Writer;
use super::{JointSpec, TrackSpec, contained};
use crate::control::{Control, Listener};
use crate::disk::Job;
use crate::outcome::State;
use crate::{Format, Outcome, RecordError, RecordedMedia, Recorder};

/// The tracks that share a file.
#[derive(Debug)]
pub(super) struct ContainerRecording {
    recorder: Recorder,
    media: MediaPlane,
    link: Arc<Link>,
    state: watch::Receiver<State>,
    /// The format of the first file.
    format: Format,
    tracks: Vec<Held>,
    /// The last track of each number.
    slots: Vec<Slot>,
}

/// A track number, which tracks use one after the other.
#[derive(Debug)]
struct Slot {
    key: String,
    codec: CodecName,
}

#[derive(Debug)]
struct Held {
    key: String,
    number: usize,
    route: RouteId,
    options: RouteOptions,
}

/// The state that both sides share.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) control: Arc<Control>,
    changes: Mutex<Changes>,
    file_name: Mutex<String>,
}

#[derive(Debug, Default)]
struct Changes {
    list: Vec<Change>,
    /// Whether changes are not taken any more.
    is_closed: bool,
}

/// A change by the plugin's side.
#[derive(Debug)]
pub(super) enum Change {
    Add(Box<NewTrack>),
    /// The track has ended. The recording goes on.
    Remove(usize),
    Gate {
        track: usize,
        open: bool,
        at: Instant,
    },
}

/// A new track.
#[derive(Debug)]
pub(super) struct NewTrack {
    /// Its number. A track with the same number is replaced,
    pub(super) number: usize,
    /// and the next part begins if this is set.
    pub(super) begins_part: bool,
    pub(super) media: RecordedMedia,
    pub(super) codec: CodecName,
    pub(super) route: RouteId,
    /// `None` once it has ended.
    pub(super) tap: Option<Tap>,
    pub(super) open: bool,
    pub(super) is_removed: bool,
}

impl Link {
    pub(super) fn take_changes(&self) -> Vec<Change> {
        std::mem::take(&mut lock(&self.changes).list)
    }

    /// Closes the link unless changes wait. Returns whether it is closed.
    pub(super) fn close_if_idle(&self) -> bool {
        let mut changes = lock(&self.changes);
        changes.is_closed |= changes.list.is_empty();
        changes.is_closed
    }

    /// Closes the link: changes are not taken any more.
    pub(super) fn close(&self) {
        let mut changes = lock(&self.changes);
        changes.is_closed = true;
        changes.list.clear();
    }

    pub(super) fn set_file(&self, path: &Path) {
        let name = path.file_name().map(OsStr::to_string_lossy);
        *lock(&self.file_name) = name.unwrap_or_default().into_owned();
    }

    /// Queues a change. Returns false if the link is closed.
    fn change(&self, change: Change) -> bool {
        let mut changes = lock(&self.changes);
        if !changes.is_closed {
            changes.list.push(change);
        }
        !changes.is_closed
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ContainerRecording {
    /// Starts with the file of this number, or with the next free one.
    pub(super) fn start(
        recorder: &Recorder,
        media: &MediaPlane,
        spec: &JointSpec,
        number: u32,
        tracks: Vec<TrackSpec>,
    ) -> Result<Self, RecordError> {
        if !recorder.shared.config.enabled {
            return Err(RecordError::Disabled);
        }
        let codecs = tracks.iter().filter_map(|track| contained(&track.media));
        let codecs: Vec<CodecName> = codecs.collect();
        let format = spec.format.for_codecs(&codecs);
        let new = NewPart::claimed(recorder, spec, number, format)?;
        let (sender, state) = watch::channel(State::Opening);
        let link = Arc::new(Link {
            control: Arc::default(),
            changes: Mutex::default(),
            file_name: Mutex::default(),
        });
        link.set_file(new.path());
        let mut recording = Self {
            recorder: recorder.clone(),
            media: media.clone(),
            link: Arc::clone(&link),
            state,
            format,
            tracks: Vec::new(),
            slots: Vec::new(),
        };
        for track in tracks {
            recording.add(&track);
        }
        let opening = Opening {
            recorder: recorder.clone(),
            media: media.clone(),
            spec: spec.clone(),
            link,
            state: sender,
        };
        recorder.shared.completions.in_this_runtime();
        tokio::spawn(opening.run(new));
        Ok(recording)
    }

    /// Whether the file has room for one more track of this codec.
    pub(super) fn takes(&self, media: &RecordedMedia) -> bool {
        let codec = contained(media);
        let fits = codec.is_some_and(|codec| self.format.takes(codec));
        fits && self.tracks.len() < MOST_TRACKS && !self.is_over()
    }

    /// Adds a track. Returns false if the recording has ended.
    pub(super) fn add(&mut self, track: &TrackSpec) -> bool {
        let Some(codec) = contained(&track.media) else {
            return false;
        };
        let options = RouteOptions {
            enabled: track.open,
            ..RouteOptions::default()
        };
        let tap = TapOptions {
            reports: true,
            ..self.recorder.tap_options(&track.media)
        };
        let (route, tap) = self.media.tap(track.from, options.clone(), tap);
        let (number, begins_part) = self.slot(&track.key, codec);
        let is_taken = self.link.change(Change::Add(Box::new(NewTrack {
            number,
            begins_part,
            media: track.media.clone(),
            codec,
            route,
            tap: Some(tap),
            open: track.open,
            is_removed: false,
        })));
        if !is_taken {
            self.media.remove_route(route);
            return false;
        }
        let slot = Slot {
            key: track.key.clone(),
            codec,
        };
        match self.slots.get_mut(number) {
            Some(known) => *known = slot,
            None => self.slots.push(slot),
        }
        self.tracks.push(Held {
            key: track.key.clone(),
            number,
            route,
            options,
        });
        true
    }

    /// Returns the number for a track, and whether the next part begins with it. The number is the
    /// one that the key had before, else a new one, else any free one.
    fn slot(&self, key: &str, codec: CodecName) -> (usize, bool) {
        let is_free = |number: usize| self.tracks.iter().all(|it| it.number != number);
        let free = || (0..self.slots.len()).filter(|number| is_free(*number));
        let is_same = |number: &usize| {
            let slot = self.slots.get(*number);
            slot.is_some_and(|slot| slot.key == key && slot.codec == codec)
        };
        if let Some(same) = free().find(is_same) {
            return (same, false);
        }
        match free().next() {
            Some(free) if self.slots.len() >= MOST_TRACKS => (free, true),
            _ => (self.slots.len(), false),
        }
    }

    pub(super) fn set_open(&mut self, key: &str, open: bool) {
        let tracks = self.tracks.iter_mut().filter(|it| it.key == key);
        for track in tracks.filter(|it| it.options.enabled != open) {
            track.options.enabled = open;
            self.media.set_route(track.route, track.options.clone());
            self.link.change(Change::Gate {
                track: track.number,
                open,
                at: Instant::now(),
            });
        }
    }

    pub(super) fn remove(&mut self, key: &str) {
        for track in self.tracks.extract_if(.., |it| it.key == key) {
            // The change comes first, so that the end of the tap is expected.
            self.link.change(Change::Remove(track.number));
            self.media.remove_route(track.route);
        }
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.tracks.iter().map(|it| it.key.as_str())
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(&*self.state.borrow(), State::Ended(_))
    }

    pub(super) fn has_failed(&self) -> bool {
        matches!(&*self.state.borrow(), State::Ended(Err(_)))
    }

    pub(super) fn file_name(&self) -> String {
        lock(&self.link.file_name).clone()
    }

    pub(super) fn listen(&self, listener: Listener) {
        self.link.control.listen(listener);
    }

    pub(super) fn outcome(&self) -> Outcome {
        Outcome::of(self.state.clone())
    }
}

impl Drop for ContainerRecording {
    fn drop(&mut self) {
        for track in &self.tracks {
            self.media.remove_route(track.route);
        }
        self.link.control.stop();
    }
}

/// A recording that is starting.
pub(super) struct Opening {
    pub(super) recorder: Recorder,
    pub(super) media: MediaPlane,
    pub(super) spec: JointSpec,
    pub(super) link: Arc<Link>,
    pub(super) state: watch::Sender<State>,
}

impl Opening {
    async fn run(self, new: NewPart) {
        let (name, state, link) = (
            self.spec.name.clone(),
            self.state.clone(),
            Arc::clone(&self.link),
        );
        let shared = Arc::clone(&self.recorder.shared);
        if let Err(error) = self.begin(new).await {
            shared.counters.failed.fetch_add(1, Relaxed);
            tracing::error!(file = name, "not recorded: {error}");
            let _ = state.send(State::Ended(Err(Arc::new(error))));
            link.close();
        }
    }

    /// Has the file made, and then written.
    async fn begin(self, new: NewPart) -> Result<(), RecordError> {
        let (path, name) = (new.path().to_owned(), self.spec.name.clone());
        let (recorder, spec) = (self.recorder.clone(), self.spec.clone());
        let create = move || new.create(&recorder, &spec);
        let discard = |part: Part| part.target.discard();
        let part = self.recorder.on_disk_of(&path, &name, create, discard);
        let part = part.await?;
        self.link.set_file(part.target.path());
        let disk = part.target.disk().clone();
        let control = Arc::clone(&self.link.control);
        let shared = Arc::clone(&self.recorder.shared);
        let writer = Writer::new(self, part);
        let given = shared.disks.give(&disk, |waker| {
            control.set_waker(waker);
            Box::new(writer) as Box<dyn Job>
        });
        given.map_err(|error| RecordError::Create { name, error })
    }
}
