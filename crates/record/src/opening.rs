//! How a recording begins: its file is made by the thread of the disk that it is on, which writes it then.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use portunus_media::Tap;
use tokio::sync::watch;

use crate::control::Control;
use crate::disk::Job;
use crate::output::Output;
use crate::recording::State;
use crate::shared::Claim;
use crate::single::Single;
use crate::{RecordError, Recorder, RecordingSpec};

/// A recording that begins.
pub(crate) struct Opening {
    pub(crate) recorder: Recorder,
    pub(crate) tap: Tap,
    pub(crate) spec: RecordingSpec,
    pub(crate) control: Arc<Control>,
    pub(crate) state: watch::Sender<State>,
}

/// The file of a recording.
pub(crate) enum File {
    ToMake(Claim),
    Made(Box<Output>),
}

impl File {
    pub(crate) fn path(&self) -> &Path {
        match self {
            File::ToMake(claim) => claim.path(),
            File::Made(output) => output.target.path(),
        }
    }
}

impl Opening {
    pub(crate) async fn run(self, file: File) {
        let state = self.state.clone();
        let (name, shared) = (self.spec.name.clone(), Arc::clone(&self.recorder.shared));
        if let Err(error) = self.begin(file).await {
            shared.counters.failed.fetch_add(1, Relaxed);
            tracing::error!(file = name, "not recorded: {error}");
            let _ = state.send(State::Ended(Err(Arc::new(error))));
        }
    }

    /// Has the file made, if it is not there yet, and then written.
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
        let job = Single::new(tap, (spec, output), Arc::clone(&control), state);
        let given = recorder.shared.disks.give(&disk, |waker| {
            control.set_waker(waker);
            Box::new(job) as Box<dyn Job>
        });
        given.map_err(|error| RecordError::Create { name, error })
    }
}

/// Makes a file.
pub(crate) async fn make(
    recorder: &Recorder,
    claim: Claim,
    spec: &RecordingSpec,
) -> Result<Output, RecordError> {
    let (path, name) = (claim.path().to_owned(), spec.name.clone());
    let (places, spec) = (Arc::clone(&recorder.places), spec.clone());
    let create = move || Output::create(claim, &places, &spec);
    let discard = |output: Output| output.target.discard();
    recorder.on_disk_of((&path, &name), create, discard).await
}
