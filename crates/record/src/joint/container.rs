//! A file that several tracks share, as the plugin's side holds it.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use portunus_media::{MediaPlane, RouteId, RouteOptions, Tap, TapOptions};
use portunus_sdp::CodecName;
use tokio::sync::watch;
use tokio::task::spawn_blocking;

use super::part::MOST_TRACKS;
use super::writer::Writer;
use super::{JointSpec, TrackSpec, contained};
use crate::control::{Control, Listener};
use crate::disk::Job;
use crate::recording::State;
use crate::shared::Claim;
use crate::{Format, Outcome, RecordError, RecordedMedia, Recorder};

/// Tracks that share a file.
#[derive(Debug)]
pub(super) struct ContainerRecording {
    recorder: Recorder,
    media: MediaPlane,
    link: Arc<Link>,
    state: watch::Receiver<State>,
    /// What the first file is.
    format: Format,
    tracks: Vec<Held>,
    /// Tracks that there were: the number of the next.
    count: usize,
}

#[derive(Debug)]
struct Held {
    key: String,
    number: usize,
    route: RouteId,
    options: RouteOptions,
}

/// What both sides have in common.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) control: Arc<Control>,
    changes: Mutex<Vec<Change>>,
    file_name: Mutex<String>,
}

/// What the plugin's side wants.
#[derive(Debug)]
pub(super) enum Change {
    Add(Box<NewTrack>),
    /// Nothing more comes of this track, and that does not end the recording.
    Remove(usize),
    Gate {
        track: usize,
        open: bool,
        at: Instant,
    },
}

/// A track that is added.
#[derive(Debug)]
pub(super) struct NewTrack {
    pub(super) media: RecordedMedia,
    pub(super) codec: CodecName,
    pub(super) route: RouteId,
    pub(super) tap: Tap,
    pub(super) open: bool,
}

impl Link {
    pub(super) fn take_changes(&self) -> Vec<Change> {
        std::mem::take(&mut *lock(&self.changes))
    }

    pub(super) fn set_file(&self, path: &Path) {
        let name = path.file_name().map(OsStr::to_string_lossy);
        *lock(&self.file_name) = name.unwrap_or_default().into_owned();
    }

    fn change(&self, change: Change) {
        lock(&self.changes).push(change);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ContainerRecording {
    pub(super) fn start(
        recorder: &Recorder,
        media: &MediaPlane,
        spec: &JointSpec,
        tracks: Vec<TrackSpec>,
    ) -> Result<Self, RecordError> {
        if !recorder.shared.config.enabled {
            return Err(RecordError::Disabled);
        }
        let codecs = tracks.iter().filter_map(|track| contained(&track.media));
        let codecs: Vec<CodecName> = codecs.collect();
        let format = spec.format.for_codecs(&codecs);
        let dir = spec.dir.as_deref();
        let path = recorder.places.file(dir, &spec.name, format.extension())?;
        let claim = Claim::new(&recorder.shared, &path, &spec.name)?;
        let (told, state) = watch::channel(State::Opening);
        let link = Arc::new(Link {
            control: Arc::default(),
            changes: Mutex::default(),
            file_name: Mutex::default(),
        });
        link.set_file(&path);
        let mut recording = Self {
            recorder: recorder.clone(),
            media: media.clone(),
            link: Arc::clone(&link),
            state,
            format,
            tracks: Vec::new(),
            count: 0,
        };
        for track in tracks {
            recording.add(track);
        }
        let opening = Opening {
            recorder: recorder.clone(),
            media: media.clone(),
            spec: spec.clone(),
            link,
            state: told,
        };
        recorder.shared.completions.in_this_runtime();
        tokio::spawn(opening.run(claim, format));
        Ok(recording)
    }

    /// Whether the file has room for one more track of this.
    pub(super) fn takes(&self, media: &RecordedMedia) -> bool {
        let codec = contained(media);
        self.count < MOST_TRACKS && codec.is_some_and(|codec| self.format.takes(codec))
    }

    pub(super) fn add(&mut self, track: TrackSpec) {
        let Some(codec) = contained(&track.media) else {
            return;
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
        self.link.change(Change::Add(Box::new(NewTrack {
            media: track.media,
            codec,
            route,
            tap,
            open: track.open,
        })));
        self.tracks.push(Held {
            key: track.key,
            number: self.count,
            route,
            options,
        });
        self.count += 1;
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
            // Said first: that its tap ends is no surprise then.
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

/// A recording that begins.
struct Opening {
    recorder: Recorder,
    media: MediaPlane,
    spec: JointSpec,
    link: Arc<Link>,
    state: watch::Sender<State>,
}

impl Opening {
    async fn run(self, claim: Claim, format: Format) {
        let (name, state) = (self.spec.name.clone(), self.state.clone());
        let shared = Arc::clone(&self.recorder.shared);
        let begun = spawn_blocking(move || self.begin(claim, format)).await;
        let begun = begun.unwrap_or_else(|gone| {
            Err(RecordError::Create {
                name: name.clone(),
                error: std::io::Error::other(gone.to_string()),
            })
        });
        if let Err(error) = begun {
            shared.counters.failed.fetch_add(1, Relaxed);
            tracing::error!(file = name, "not recorded: {error}");
            let _ = state.send(State::Ended(Err(Arc::new(error))));
        }
    }

    /// Makes the file. It blocks.
    fn begin(self, claim: Claim, format: Format) -> Result<(), RecordError> {
        let Self {
            recorder,
            media,
            spec,
            link,
            state,
        } = self;
        let name = spec.name.clone();
        let control = Arc::clone(&link.control);
        let shared = Arc::clone(&recorder.shared);
        let of = (spec, link, state);
        let made = Writer::create((recorder, media), of, (claim, format))?;
        let (writer, disk, folder) = made;
        let given = shared.disks.give(&disk, &folder, |waker| {
            control.set_waker(waker);
            Box::new(writer) as Box<dyn Job>
        });
        given.map_err(|error| RecordError::Create { name, error })
    }
}
