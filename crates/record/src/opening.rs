//! How a recording begins: its file is made, and given to the thread of the disk that it is on.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use portunus_media::Tap;
use tokio::sync::watch;
use tokio::task::{JoinError, spawn_blocking};

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
        let (name, state) = (self.spec.name.clone(), self.state.clone());
        let shared = Arc::clone(&self.recorder.shared);
        let begun = spawn_blocking(move || self.begin(file)).await;
        let begun = begun.unwrap_or_else(|gone| Err(lost(&name, &gone)));
        if let Err(error) = begun {
            shared.counters.failed.fetch_add(1, Relaxed);
            tracing::error!(file = name, "not recorded: {error}");
            let _ = state.send(State::Ended(Err(Arc::new(error))));
        }
    }

    /// Makes the file, if it is not there yet. It blocks.
    fn begin(self, file: File) -> Result<(), RecordError> {
        let Self {
            recorder,
            tap,
            spec,
            control,
            state,
        } = self;
        let output = match file {
            File::Made(output) => *output,
            File::ToMake(claim) => Output::create(claim, &recorder.places, &spec)?,
        };
        let (disk, folder) = (
            output.target.disk().clone(),
            output.target.folder().to_owned(),
        );
        let name = spec.name.clone();
        let job = Single::new(tap, (spec, output), Arc::clone(&control), state);
        let given = recorder.shared.disks.give(&disk, &folder, |waker| {
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
    let (places, wanted) = (Arc::clone(&recorder.places), spec.clone());
    let made = spawn_blocking(move || Output::create(claim, &places, &wanted)).await;
    made.unwrap_or_else(|gone| Err(lost(&spec.name, &gone)))
}

/// The thread that makes files is gone.
fn lost(name: &str, gone: &JoinError) -> RecordError {
    RecordError::Create {
        name: name.to_owned(),
        error: std::io::Error::other(gone.to_string()),
    }
}
