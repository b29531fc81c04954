//! The activity of a handle: none, recording or playing. Cheap to clone.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use portunus_core::record::{Outcome, RecordError};
use portunus_core::{Handle, LocalJsep, Object};
use portunus_player::Ended;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::complete_recording::millis;
use crate::director::Director;
use crate::lookup::{self, Opened};
use crate::opening::Place;
use crate::player::{Line, Phase, Player};
use crate::recorder::{Plan, Recorder};
use crate::refusal::Refusal;
use crate::requests::{Play, Record, Settings};
use crate::shared::Shared;

/// The time for which the PeerConnection stays open after the last packet, because receivers still
/// play their buffers.
const LINGER: Duration = Duration::from_millis(500);

/// The activity of a handle.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub(crate) handle: Handle,
    pub(crate) shared: Arc<Shared>,
    inner: Arc<Mutex<Inner>>,
    settings: watch::Sender<Settings>,
}

#[derive(Debug, Default)]
struct Inner {
    state: State,
    /// Counts the states, so that the end of one is not mistaken for that of the next.
    turn: u64,
    /// Counts the requests to play, so that a file opened for an earlier one is not played.
    asked: watch::Sender<u64>,
    /// Its place among the players.
    place: Option<Place>,
    /// Whether media can flow.
    is_up: bool,
    /// The m-lines that were offered to the client.
    lines: Vec<Line>,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Idle,
    Recording(Box<Recorder>),
    Playing(Box<Player>),
}

/// The result of a pause or resume.
enum Paused {
    Recording(u64),
    Playing(Object),
}

impl Session {
    pub(crate) fn new(handle: Handle, shared: Arc<Shared>) -> Self {
        Self {
            handle,
            shared,
            inner: Arc::default(),
            settings: watch::Sender::new(Settings::default()),
        }
    }

    /// Returns the settings for senders.
    pub(crate) fn settings(&self) -> Settings {
        *self.settings.borrow()
    }

    pub(crate) fn set_settings(&self, settings: Settings) {
        self.settings.send_replace(settings);
    }

    /// Starts recording, or renegotiates.
    pub(crate) fn record(
        &self,
        transaction: &str,
        request: &Record<'_>,
        may_know_reason: bool,
    ) -> Result<(), Refusal> {
        let mut inner = self.inner();
        let (is_up, turn) = (inner.is_up, inner.turn);
        match &mut inner.state {
            State::Recording(recorder) if request.updates => {
                self.renegotiate(transaction, request, recorder, is_up)?;
                let this = self.clone();
                tokio::spawn(async move { this.describe_again(turn).await });
                return Ok(());
            }
            State::Recording(_) => return Err(Refusal::AlreadyRecording),
            State::Idle if !request.updates => {}
            State::Idle | State::Playing(_) => return Err(Refusal::NotRecording),
        }
        let plan = Plan::new(&self.shared, request)?;
        let local = self.handle.answer(plan.answer.clone())?;
        let local = local.with_e2ee(request.offer.e2ee);
        let started = plan.start(&self.shared, &self.handle);
        let mut recorder = match started {
            Ok(recorder) => recorder,
            Err(error) => {
                drop(inner);
                self.shared.counts.failed.add();
                self.handle.close_pc();
                return Err(Refusal::record(&error, may_know_reason));
            }
        };
        self.shared.counts.recorded.add();
        if is_up {
            recorder.director = self.direct(&recorder);
        }
        let outcome = recorder.outcome();
        let turn = inner.set(State::Recording(Box::new(recorder)));
        inner.place = None;
        drop(inner);
        let (this, transaction) = (self.clone(), transaction.to_owned());
        tokio::spawn(async move {
            this.watch(turn, outcome, transaction, local, may_know_reason)
                .await;
        });
        Ok(())
    }

    fn renegotiate(
        &self,
        transaction: &str,
        request: &Record<'_>,
        recorder: &mut Recorder,
        is_up: bool,
    ) -> Result<(), Refusal> {
        let answer = recorder.renegotiate(request);
        let local = self.handle.answer(answer.clone())?;
        recorder.agreed(&self.handle, &answer);
        if is_up && recorder.director.is_none() {
            recorder.director = self.direct(recorder);
        }
        let local = local.with_e2ee(recorder.e2ee);
        self.push_result(Some(transaction), recorder_status(recorder), Some(local));
        Ok(())
    }

    /// Rewrites the description, so that a crash loses none of the new tracks.
    async fn describe_again(&self, turn: u64) {
        let news = || {
            let mut inner = self.inner();
            let is_this = inner.turn == turn;
            match &mut inner.state {
                State::Recording(recorder) if is_this => recorder.news(),
                _ => None,
            }
        };
        self.shared.shelf.change(news).await;
    }

    /// Answers once the files are made, and ends the recording if it fails.
    async fn watch(
        &self,
        turn: u64,
        outcome: Outcome,
        transaction: String,
        local: LocalJsep,
        may_know_reason: bool,
    ) {
        let opened = outcome.clone().opened().await;
        let described = {
            let inner = self.inner();
            match &inner.state {
                State::Recording(recorder) if inner.turn == turn => recorder.description(),
                _ => return,
            }
        };
        let started = match opened {
            Ok(()) => match self.shared.shelf.begin(&described).await {
                Ok(()) => Ok(()),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                    Err(Refusal::Exists(described.id))
                }
                Err(error) if may_know_reason => Err(Refusal::Record(error.to_string())),
                Err(_) => Err(Refusal::Record(
                    "the server has no room for it now".to_owned(),
                )),
            },
            Err(error) => Err(Refusal::record(&error, may_know_reason)),
        };
        if let Err(refusal) = started {
            // Nothing was recorded, so its id is free again.
            if self.take(turn).is_some() {
                self.shared.counts.failed.add();
                self.handle
                    .push(Some(&transaction), refusal.to_json(), None);
                self.handle.close_pc();
            }
            return;
        }
        let id = described.id;
        let is_on = {
            let mut inner = self.inner();
            let is_this = inner.turn == turn;
            match &mut inner.state {
                State::Recording(recorder) if is_this => {
                    recorder.described = Some(described);
                    let status = recorder_status(recorder);
                    self.push_result(Some(&transaction), status, Some(local));
                    true
                }
                _ => false,
            }
        };
        if !is_on {
            // It was ended while its description was written.
            self.shared.shelf.withdraw(id).await;
            return;
        }
        self.notify("recording", Some(id));
        // More tracks may have been added meanwhile.
        self.describe_again(turn).await;
        if let Some(error) = outcome.failed().await {
            self.fail(turn, &error, may_know_reason);
        }
    }

    /// Ends a recording that failed. The content so far can be played.
    fn fail(&self, turn: u64, error: &RecordError, may_know_reason: bool) {
        let Some(state) = self.take(turn) else {
            return;
        };
        self.shared.counts.failed.add();
        // A recording that has reached its greatest length is complete.
        if !matches!(error, RecordError::Full { .. }) {
            let refusal = Refusal::record(error, may_know_reason);
            self.handle.push(None, refusal.to_json(), None);
        }
        self.end(state);
        self.handle.close_pc();
    }

    /// Opens a recording, and offers it.
    pub(crate) fn play(&self, transaction: &str, play: Play) -> Result<(), Refusal> {
        let (asked, mut later) = {
            let mut inner = self.inner();
            if matches!(inner.state, State::Recording(_)) {
                return Err(Refusal::AlreadyRecording);
            }
            if inner.place.is_none() {
                inner.place = Some(self.shared.opening.place()?);
            }
            (inner.ask(), inner.asked.subscribe())
        };
        let (this, transaction) = (self.clone(), transaction.to_owned());
        tokio::spawn(async move {
            let opened = tokio::select! {
                opened = lookup::open(&this.shared, play) => opened,
                _ = later.wait_for(|now| *now != asked) => Err(Refusal::Superseded),
            };
            let prepared = opened.and_then(|opened| this.prepare(asked, &transaction, opened));
            if let Err(refusal) = prepared {
                this.inner().not_played(asked);
                this.shared.counts.refused.add();
                this.handle
                    .push(Some(&transaction), refusal.to_json(), None);
            }
        });
        Ok(())
    }

    /// Offers an opened recording, unless another request came meanwhile.
    fn prepare(&self, asked: u64, transaction: &str, opened: Opened) -> Result<(), Refusal> {
        let mut inner = self.inner();
        if *inner.asked.borrow() != asked {
            return Err(Refusal::Superseded);
        }
        let known = match std::mem::take(&mut inner.state) {
            State::Playing(player) => player.into_lines(),
            State::Idle | State::Recording(_) => std::mem::take(&mut inner.lines),
        };
        let player = Player::new(opened.what, opened.playback, known);
        let offered = self.handle.offer(player.offer(), false);
        let local = match offered {
            Ok(local) => local.with_e2ee(player.e2ee),
            Err(error) => {
                inner.lines = player.into_lines();
                return Err(error.into());
            }
        };
        let preparing = player.preparing(opened.warning.as_deref());
        inner.set(State::Playing(Box::new(player)));
        self.push_result(Some(transaction), preparing, Some(local));
        Ok(())
    }

    /// Repeats the offer with new ICE credentials.
    pub(crate) fn restart(&self, transaction: &str) -> Result<(), Refusal> {
        let inner = self.inner();
        let State::Playing(player) = &inner.state else {
            return Err(Refusal::NotPlaying);
        };
        let local = self.handle.offer(player.offer(), true)?;
        let local = local.with_e2ee(player.e2ee);
        let restarting = player.what.status("restarting");
        self.push_result(Some(transaction), restarting, Some(local));
        Ok(())
    }

    /// Handles the client's answer.
    pub(crate) fn start(&self, transaction: &str) -> Result<(), Refusal> {
        let mut inner = self.inner();
        let State::Playing(player) = &mut inner.state else {
            return Err(Refusal::NothingToStart);
        };
        player.answered();
        let id = player.what.id();
        self.push_result(Some(transaction), json!({ "status": "playing" }), None);
        self.begin(&mut inner);
        drop(inner);
        self.notify("playing", id);
        Ok(())
    }

    /// Handles that the PeerConnection is up.
    pub(crate) fn up(&self) {
        let mut inner = self.inner();
        inner.is_up = true;
        if let State::Recording(recorder) = &mut inner.state {
            recorder.director = self.direct(recorder);
        }
        self.begin(&mut inner);
    }

    /// Controls the sender of video, if there is any.
    fn direct(&self, recorder: &Recorder) -> Option<Director> {
        let settings = self.settings.subscribe();
        let video = recorder.video()?;
        Some(Director::start(self.handle.clone(), video, settings))
    }

    /// Starts to play once the client has answered and the PeerConnection is up.
    fn begin(&self, inner: &mut Inner) {
        let (is_up, turn) = (inner.is_up, inner.turn);
        let State::Playing(player) = &mut inner.state else {
            return;
        };
        if !is_up || player.phase != Phase::Answered {
            return;
        }
        let Some(ended) = player.begin(&self.handle, &self.shared.media) else {
            return;
        };
        self.shared.counts.played.add();
        let this = self.clone();
        tokio::spawn(async move {
            if ended.await == Ended::Unwanted {
                return;
            }
            sleep(LINGER).await;
            if let Some(state) = this.take(turn) {
                this.end(state);
                this.handle.close_pc();
            }
        });
    }

    /// Seeks in the recording.
    pub(crate) fn seek(&self, transaction: &str, position: Duration) -> Result<(), Refusal> {
        let mut inner = self.inner();
        let State::Playing(player) = &mut inner.state else {
            return Err(Refusal::NothingToSeek);
        };
        if let Some(duration) = player.duration.filter(|duration| position > *duration) {
            let wanted = format!("at most {}, which is how long it lasts", millis(duration));
            return Err(Refusal::element("position", wanted));
        }
        if !player.seek(position) {
            return Err(Refusal::NothingToSeek);
        }
        let seeking = player.what.status("seeking");
        let seeking = seeking.with("position", millis(position));
        self.push_result(Some(transaction), seeking, None);
        Ok(())
    }

    /// Pauses or resumes.
    pub(crate) fn pause(&self, transaction: &str, pause: bool) {
        let mut inner = self.inner();
        let paused = match &mut inner.state {
            State::Idle => None,
            State::Recording(recorder) => {
                recorder.pause(pause);
                Some(Paused::Recording(recorder.nfo.id))
            }
            State::Playing(player) => {
                player.pause(pause);
                let status = if pause { "paused" } else { "resumed" };
                Some(Paused::Playing(player.what.status(status)))
            }
        };
        let status = if pause { "paused" } else { "resumed" };
        let result: Option<Value> = paused.map(|paused| match paused {
            Paused::Recording(id) => json!({ "status": status, "id": id }),
            Paused::Playing(status) => status.into(),
        });
        let event = Object::new().with("recordplay", "event");
        let event = event.with_some("result", result);
        self.handle.push(Some(transaction), event, None);
    }

    /// Ends the activity and the PeerConnection.
    pub(crate) fn stop(&self, transaction: &str) {
        let state = self.inner().clear();
        self.push_result(Some(transaction), state.end_event("stopped"), None);
        if !matches!(state, State::Idle) {
            self.end(state);
        }
        self.handle.close_pc();
    }

    /// Handles the loss of the PeerConnection.
    pub(crate) fn hung_up(&self) {
        let state = self.inner().clear();
        self.end(state);
    }

    /// Handles the loss of the client.
    pub(crate) fn close(&self) {
        let state = self.inner().clear();
        if let State::Recording(recorder) = state {
            recorder.finish(&self.shared);
        }
    }

    /// Takes the state out, if it is still the one of this turn.
    fn take(&self, turn: u64) -> Option<State> {
        let mut inner = self.inner();
        let is_this = inner.turn == turn && !matches!(inner.state, State::Idle);
        is_this.then(|| inner.clear())
    }

    /// Tells the client the end, and closes the PeerConnection.
    fn end(&self, state: State) {
        let done = state.end_event("done");
        let id = state.id();
        if let State::Recording(recorder) = state {
            recorder.finish(&self.shared);
        }
        self.push_result(None, done, None);
        self.notify("done", id);
    }

    /// Reports packet loss from or to the client.
    pub(crate) fn slow_link(&self, audio: bool, from_client: bool) {
        let records = matches!(self.inner().state, State::Recording(_));
        let bitrate = (records && !audio).then(|| self.settings().bitrate);
        let result = Object::new()
            .with("status", "slow_link")
            .with("media", if audio { "audio" } else { "video" })
            .with_some("current-bitrate", bitrate)
            .with("uplink", i32::from(from_client));
        self.push_result(None, result, None);
    }

    /// Returns the handle's state for administrators.
    pub(crate) fn query(&self) -> Value {
        let inner = self.inner();
        let (kind, id, name, e2ee) = match &inner.state {
            State::Idle => ("none", None, None, false),
            State::Recording(it) => {
                let nfo = &it.nfo;
                ("recorder", Some(nfo.id), Some(nfo.name.as_str()), it.e2ee)
            }
            State::Playing(it) => ("player", it.what.id(), Some(it.what.name()), it.e2ee),
        };
        Object::new()
            .with("type", kind)
            .with_some("recording_id", id)
            .with_some("recording_name", name)
            .with_some("e2ee", e2ee.then_some(true))
            .with("hangingup", 0)
            .with("destroyed", 0)
            .into()
    }

    pub(crate) fn push_result(
        &self,
        transaction: Option<&str>,
        result: impl Into<Value>,
        jsep: Option<LocalJsep>,
    ) {
        let data = json!({ "recordplay": "event", "result": result.into() });
        self.handle.push(transaction, data, jsep);
    }

    fn notify(&self, event: &str, id: Option<u64>) {
        if self.shared.config.events {
            self.handle.notify(|| {
                let event = Object::new().with("event", event);
                event.with_some("id", id).into()
            });
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Counts a new request to play, and returns its number.
    fn ask(&mut self) -> u64 {
        self.asked.send_modify(|asked| *asked += 1);
        *self.asked.borrow()
    }

    /// Frees the place of a request that failed, unless the handle does something else.
    fn not_played(&mut self, asked: u64) {
        if *self.asked.borrow() == asked && matches!(self.state, State::Idle) {
            self.place = None;
        }
    }

    /// Enters a state, and returns its number.
    fn set(&mut self, state: State) -> u64 {
        self.turn += 1;
        self.ask();
        self.state = state;
        self.turn
    }

    /// Enters the idle state, because the PeerConnection is gone.
    fn clear(&mut self) -> State {
        let state = std::mem::take(&mut self.state);
        self.set(State::Idle);
        self.is_up = false;
        self.lines.clear();
        self.place = None;
        state
    }
}

impl State {
    fn id(&self) -> Option<u64> {
        match self {
            State::Idle => None,
            State::Recording(recorder) => Some(recorder.nfo.id),
            State::Playing(player) => player.what.id(),
        }
    }

    /// Returns the event about the end.
    fn end_event(&self, status: &str) -> Object {
        let is_private = match self {
            State::Idle => None,
            State::Recording(recorder) => Some(recorder.nfo.is_private),
            State::Playing(player) => player.what.is_private(),
        };
        Object::new()
            .with("status", status)
            .with_some("id", self.id())
            .with_some("is_private", is_private.map(i32::from))
    }
}

fn recorder_status(recorder: &Recorder) -> Value {
    let nfo = &recorder.nfo;
    json!({ "status": "recording", "id": nfo.id, "is_private": nfo.is_private })
}
