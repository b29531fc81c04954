//! The message of a handle: its recording, and its end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use portunus_core::record::{
    End, Format, Outcome, Prepared, RecordError, RecordedMedia, Recording, RecordingSpec,
};
use portunus_core::sdp::{CodecName, Description};
use portunus_core::{Handle, LocalJsep, Mid, Object, PendingOffer};
use serde_json::{Value, json};

use crate::file::MessageId;
use crate::request::Refusal;
use crate::shared::Shared;

/// The message of a handle; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Mailbox {
    handle: Handle,
    shared: Arc<Shared>,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug)]
struct Inner {
    /// The id of the present or next message.
    id: MessageId,
    state: State,
    /// Whether media can flow.
    is_up: bool,
}

#[derive(Debug)]
enum State {
    Idle,
    /// The file is being made.
    Opening,
    Recording(Recording, Caller),
    /// The handle is ending.
    Ended,
}

/// The client that leaves a message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller {
    /// The m-line that is recorded.
    pub(crate) mid: Mid,
    /// The version of the last answer.
    pub(crate) version: u64,
    /// Whether it may know the reasons of failures.
    pub(crate) may_know_reason: bool,
    /// The time limit of the message.
    pub(crate) limit: Duration,
    /// Whether it asked for a limit. It learns the real one then.
    pub(crate) asked_limit: bool,
}

/// A later answer of a message.
pub(crate) struct NextAnswer {
    pub(crate) id: MessageId,
    /// The m-line that is recorded.
    pub(crate) mid: Mid,
    pub(crate) version: u64,
}

/// A recording that has started.
struct Started {
    local: LocalJsep,
    is_up: bool,
    outcome: Outcome,
}

impl Mailbox {
    pub(crate) fn new(handle: Handle, shared: Arc<Shared>) -> Self {
        let inner = Inner {
            id: MessageId::random(),
            state: State::Idle,
            is_up: false,
        };
        Self {
            handle,
            shared,
            inner: Arc::new(Mutex::new(inner)),
        }
    }

    /// Returns the id of the next message, if one may start.
    pub(crate) fn next(&self) -> Result<MessageId, Refusal> {
        let inner = self.inner();
        match inner.state {
            State::Idle => Ok(inner.id),
            State::Opening | State::Recording(..) => Err(Refusal::AlreadyRecording),
            State::Ended => Err(Refusal::NotRecording),
        }
    }

    /// Returns the message that is being recorded, and the next version of the answer.
    pub(crate) fn updated(&self) -> Result<NextAnswer, Refusal> {
        let mut inner = self.inner();
        let id = inner.id;
        match &mut inner.state {
            State::Recording(_, caller) => {
                caller.version = caller.version.saturating_add(1);
                Ok(NextAnswer {
                    id,
                    mid: caller.mid,
                    version: caller.version,
                })
            }
            State::Idle | State::Opening | State::Ended => Err(Refusal::NotRecording),
        }
    }

    /// Makes the file. The answer follows then.
    pub(crate) fn record(
        &self,
        transaction: String,
        offer: Option<PendingOffer>,
        answer: Description,
        caller: Caller,
    ) {
        let id = {
            let mut inner = self.inner();
            inner.state = State::Opening;
            inner.id
        };
        let this = self.clone();
        tokio::spawn(async move {
            let spec = RecordingSpec {
                dir: None,
                name: id.stem(),
                media: RecordedMedia::codec(CodecName::Opus),
                format: Format::OggOpus,
                of: None,
            };
            let prepared = this.shared.recorder.prepare(spec).await;
            let started = this.begin(id, prepared, &transaction, answer, caller);
            if let Err(refusal) = started.await {
                this.shared.counts.refused.add();
                drop(offer);
                this.push(Some(&transaction), refusal.to_json(), None);
            }
        });
    }

    /// Answers the offer, and starts recording.
    async fn begin(
        &self,
        id: MessageId,
        prepared: Result<Prepared, RecordError>,
        transaction: &str,
        answer: Description,
        caller: Caller,
    ) -> Result<(), Refusal> {
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(error) => {
                self.inner().reset(id);
                return Err(Refusal::open(&error, caller.may_know_reason));
            }
        };
        let started = self.start(id, prepared, answer, caller);
        let Started {
            local,
            is_up,
            outcome,
        } = match started {
            Ok(started) => started,
            Err((prepared, refusal)) => {
                prepared.discard().await;
                return Err(refusal);
            }
        };
        self.shared.counts.started.add();
        self.watch(id, outcome, caller);
        let status = if is_up { "started" } else { "starting" };
        self.push(Some(transaction), caller.start_event(status), Some(local));
        self.notify(json!({ "event": "starting" }));
        Ok(())
    }

    /// Starts recording into the file, unless the message has ended meanwhile.
    #[expect(
        clippy::result_large_err,
        reason = "the file is given back to be deleted"
    )]
    fn start(
        &self,
        id: MessageId,
        prepared: Prepared,
        answer: Description,
        caller: Caller,
    ) -> Result<Started, (Prepared, Refusal)> {
        let mut inner = self.inner();
        if inner.id != id || !matches!(inner.state, State::Opening) {
            return Err((prepared, Refusal::NotRecording));
        }
        inner.state = State::Idle;
        let local = match self.handle.answer(answer) {
            Ok(local) => local,
            Err(error) => return Err((prepared, error.into())),
        };
        let Some(track) = self.handle.track(caller.mid) else {
            return Err((prepared, Refusal::NotRecording));
        };
        let recording = prepared.start(&self.shared.media, track, true);
        let outcome = recording.outcome();
        let is_up = inner.is_up;
        if is_up {
            recording.end_at(Instant::now() + caller.limit);
        }
        self.shared.current.add(id);
        inner.state = State::Recording(recording, caller);
        Ok(Started {
            local,
            is_up,
            outcome,
        })
    }

    /// Waits for the end of the message, unless it is stopped.
    fn watch(&self, id: MessageId, outcome: Outcome, caller: Caller) {
        let this = self.clone();
        tokio::spawn(async move {
            let ended = outcome.ended().await;
            this.shared.current.remove(id);
            let failed = match ended {
                // The request that stopped it reports that, and the end of a PeerConnection is
                // another event.
                Ok(End::Stopped | End::Source) => return,
                Ok(End::Time) => None,
                Err(error) => Some(error),
            };
            if this.inner().end(id) {
                this.conclude(id, None, failed.as_deref(), caller.may_know_reason);
            }
        });
    }

    /// Starts the time of the message, because the PeerConnection is up.
    pub(crate) fn up(&self) {
        let mut inner = self.inner();
        inner.is_up = true;
        if let State::Recording(recording, caller) = &inner.state {
            recording.end_at(Instant::now() + caller.limit);
            self.shared.current.started(inner.id);
            self.push(None, caller.start_event("started"), None);
        }
    }

    /// Ends the message, because the PeerConnection is gone. The file is kept. The next message has
    /// another id.
    pub(crate) fn hung_up(&self) {
        let mut inner = self.inner();
        inner.is_up = false;
        if !matches!(inner.state, State::Ended) {
            inner.state = State::Idle;
        }
        inner.id = MessageId::random();
    }

    /// Completes the message and closes the handle.
    pub(crate) fn stop(&self, transaction: String) {
        let mut inner = self.inner();
        let (id, state) = (inner.id, std::mem::replace(&mut inner.state, State::Ended));
        drop(inner);
        let this = self.clone();
        match state {
            State::Recording(recording, caller) => {
                let outcome = recording.outcome();
                drop(recording);
                tokio::spawn(async move {
                    let failed = outcome.ended().await.err();
                    let failed = failed.as_deref();
                    this.conclude(id, Some(&transaction), failed, caller.may_know_reason);
                });
            }
            State::Idle | State::Opening | State::Ended => {
                this.push(Some(&transaction), this.done(id), None);
                this.handle.end();
            }
        }
    }

    /// Ends everything, because the client is gone.
    pub(crate) fn close(&self) {
        self.inner().state = State::Ended;
    }

    /// Reports the end of the message, and closes the handle.
    fn conclude(
        &self,
        id: MessageId,
        transaction: Option<&str>,
        failed: Option<&RecordError>,
        may_know_reason: bool,
    ) {
        // A file that has reached its greatest length is complete.
        let failed = failed.filter(|error| !matches!(error, RecordError::Full { .. }));
        match failed {
            Some(error) => {
                self.shared.counts.failed.add();
                let refusal = Refusal::write(error, may_know_reason);
                self.push(transaction, refusal.to_json(), None);
            }
            None => {
                self.shared.counts.done.add();
                self.push(transaction, self.done(id), None);
                self.notify(json!({ "event": "done" }));
            }
        }
        self.handle.end();
    }

    fn done(&self, id: MessageId) -> Value {
        let address = id.address(&self.shared.config.base);
        json!({ "voicemail": "event", "status": "done", "recording": address })
    }

    /// Returns the handle's state for administrators.
    pub(crate) fn query(&self) -> Value {
        let inner = self.inner();
        let recorded = match inner.state {
            State::Recording(..) => Some(self.shared.current.show(inner.id)),
            State::Idle | State::Opening | State::Ended => None,
        };
        let state = if recorded.is_some() {
            "recording"
        } else {
            "idle"
        };
        let file = self.shared.recorder.folder().join(inner.id.file_name());
        let file = recorded
            .is_some()
            .then(|| file.to_string_lossy().into_owned());
        Object::new()
            .with("state", state)
            .with_all(recorded.unwrap_or_default())
            .with_some("filename", file)
            .with("hangingup", 0)
            .with("destroyed", i32::from(matches!(inner.state, State::Ended)))
            .into()
    }

    pub(crate) fn push(
        &self,
        transaction: Option<&str>,
        data: impl Into<Value>,
        jsep: Option<LocalJsep>,
    ) {
        self.handle.push(transaction, data, jsep);
    }

    fn notify(&self, event: Value) {
        if self.shared.config.events {
            self.handle.notify(|| event);
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Allows another message, because this one was not started.
    fn reset(&mut self, id: MessageId) {
        if self.id == id && matches!(self.state, State::Opening) {
            self.state = State::Idle;
        }
    }

    /// Ends this message, if it is being recorded.
    fn end(&mut self, id: MessageId) -> bool {
        let is_recorded = self.id == id && matches!(self.state, State::Recording(..));
        if is_recorded {
            self.state = State::Ended;
        }
        is_recorded
    }
}

impl Caller {
    /// Returns the event about the start of the message.
    fn start_event(&self, status: &str) -> Value {
        let limit = self.asked_limit.then_some(self.limit.as_secs());
        Object::new()
            .with("voicemail", "event")
            .with("status", status)
            .with_some("max_duration", limit)
            .into()
    }
}
