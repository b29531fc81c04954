//! The start of a recording: the thread of its disk makes the file, and writes it then.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use portunus_media::{MediaPlane, RouteOptions, SourceRef, Tap};
use tokio::sync::watch;

use crate::control::Control;
use crate::disk::Job;
use crate::outcome::State;
use crate::output::Output;
use crate::shared::Claim;
use crate::single::Single;
use crate::{RecordError, Recorder, Recording, RecordingSpec};

impl Recorder {
    /// Records `from` until the [`Recording`] is dropped or the source ends. With a closed gate
    /// nothing is recorded until it is opened. The file is made in the background: see
    /// [`Recording::outcome`]. Needs tokio's runtime.
    pub fn start(
        &self,
        media: &MediaPlane,
        from: impl Into<SourceRef>,
        open: bool,
        spec: RecordingSpec,
    ) -> Result<Recording, RecordError> {
        let claim = self.claim(&spec)?;
        Ok(self.begin(media, from.into(), open, spec, File::ToMake(claim)))
    }

    /// Makes a file for a source that does not exist yet.
    pub async fn prepare(&self, spec: RecordingSpec) -> Result<Prepared, RecordError> {
        let claim = self.claim(&spec)?;
        let output = make(self, claim, &spec).await;
        if output.is_err() {
            self.shared.counters.failed.fetch_add(1, Relaxed);
        }
        Ok(Prepared {
            recorder: self.clone(),
            output: output?,
            spec,
        })
    }

    fn claim(&self, spec: &RecordingSpec) -> Result<Claim, RecordError> {
        if !self.shared.config.enabled {
            return Err(RecordError::Disabled);
        }
        let extension = spec.format.extension();
        let path = self
            .places
            .file(spec.dir.as_deref(), &spec.name, extension)?;
        self.claim_name(&path, &spec.name)
    }

    fn begin(
        &self,
        media: &MediaPlane,
        from: SourceRef,
        open: bool,
        spec: RecordingSpec,
        file: File,
    ) -> Recording {
        let path = file.path().to_owned();
        let options = RouteOptions {
            enabled: open,
            ..RouteOptions::default()
        };
        let (route, tap) = media.tap(from, options.clone(), self.tap_options(&spec.media));
        let (sender, state) = watch::channel(State::Opening);
        let control = Arc::new(Control::default());
        let opening = Opening {
            recorder: self.clone(),
            tap,
            spec,
            control: Arc::clone(&control),
            state: sender,
        };
        self.shared.completions.in_this_runtime();
        tokio::spawn(opening.run(file));
        Recording::new(media.clone(), route, options, path, state, control)
    }
}

/// A file for a recording that has not started.
#[derive(Debug)]
pub struct Prepared {
    recorder: Recorder,
    spec: RecordingSpec,
    output: Output,
}

impl Prepared {
    /// Records `from` into it, like [`Recorder::start`].
    pub fn start(self, media: &MediaPlane, from: impl Into<SourceRef>, open: bool) -> Recording {
        let Self {
            recorder,
            spec,
            output,
        } = self;
        let file = File::Made(Box::new(output));
        recorder.begin(media, from.into(), open, spec, file)
    }

    /// Deletes the file.
    pub async fn discard(self) {
        let Self {
            recorder, output, ..
        } = self;
        let disk = output.target.disk().clone();
        let discard = move || output.target.discard();
        let _ = recorder.shared.disks.ask(&disk, discard, drop).await;
    }
}

/// A recording that is starting.
struct Opening {
    recorder: Recorder,
    tap: Tap,
    spec: RecordingSpec,
    control: Arc<Control>,
    state: watch::Sender<State>,
}

/// The file of a recording.
enum File {
    ToMake(Claim),
    Made(Box<Output>),
}

impl File {
    fn path(&self) -> &Path {
        match self {
            File::ToMake(claim) => claim.path(),
            File::Made(output) => output.target.path(),
        }
    }
}

impl Opening {
    async fn run(self, file: File) {
        let state = self.state.clone();
        let (name, shared) = (self.spec.name.clone(), Arc::clone(&self.recorder.shared));
        if let Err(error) = self.begin(file).await {
            shared.counters.failed.fetch_add(1, Relaxed);
            tracing::error!(file = name, "not recorded: {error}");
            let _ = state.send(State::Ended(Err(Arc::new(error))));
        }
    }

    /// Makes the file, if needed, and hands the recording to the disk's thread.
    async fn begin(self, file: File) -> Result<(), RecordError> {
        let Self {
            recorder,
            tap,
            spec,
            control,
            state,
        } = self;
        let output = match file {
            File::Made(output) => *output,
            File::ToMake(claim) => make(&recorder, claim, &spec).await?,
        };
        let (disk, name) = (output.target.disk().clone(), spec.name.clone());
        let job = Single::new(tap, spec, output, Arc::clone(&control), state);
        let given = recorder.shared.disks.give(&disk, |waker| {
            control.set_waker(waker);
            Box::new(job) as Box<dyn Job>
        });
        given.map_err(|error| RecordError::Create { name, error })
    }
}

/// Makes a file on its disk's thread.
async fn make(
    recorder: &Recorder,
    claim: Claim,
    spec: &RecordingSpec,
) -> Result<Output, RecordError> {
    let (path, name) = (claim.path().to_owned(), spec.name.clone());
    let (places, spec) = (Arc::clone(&recorder.places), spec.clone());
    let create = move || Output::create(claim, &places, &spec);
    let discard = |output: Output| output.target.discard();
    recorder.on_disk_of(&path, &name, create, discard).await
}
