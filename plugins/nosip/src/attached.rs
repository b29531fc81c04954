//! A handle: its requests, and the events of its PeerConnection.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use portunus_call::{ForwardRequest, KeyframeRequest, RecordingRequest};
use portunus_core::{
    Fields, Handle, HandleEvent, Jsep, JsepKind, LocalJsep, Message, Object, PluginHandle, Reply,
};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::call::{SharedCall, named};
use crate::request::{Generate, Process, Recording, Refusal, Request};
use crate::shared::Shared;

/// A client as long as its handle is attached.
pub(crate) struct Attached {
    handle: Handle,
    shared: Arc<Shared>,
    call: SharedCall,
    unique_id: String,
}

/// The result of a request: the event for the client, and its offer or answer.
type Outcome = (Object, Option<LocalJsep>);

impl Attached {
    pub(crate) fn new(handle: Handle, shared: Arc<Shared>) -> Self {
        Attached {
            call: SharedCall::new(&handle, &shared),
            handle,
            shared,
            unique_id: Uuid::new_v4().to_string(),
        }
    }

    /// Executes a request. Returns `None` if it is answered later, or was answered.
    fn request(&mut self, message: &Message) -> Result<Option<Outcome>, Refusal> {
        let transaction = message.transaction.as_str();
        let fields = Fields(&message.body);
        match Request::read(message, self.shared.public)? {
            Request::Generate => {
                let generate: Generate<'_> = fields.read()?;
                let (jsep, srtp) = generate.check(message.jsep.as_ref())?;
                let mut call = self.call.lock();
                let made = match jsep.kind {
                    JsepKind::Offer => call.media.offer(&jsep.description, srtp),
                    JsepKind::Answer => call.media.answer(&jsep.description, srtp),
                };
                let sdp = made.map_err(|error| Refusal::of("generate answer", error))?;
                call.media.keep_offer(message.offer.clone());
                call.go_on(jsep.kind == JsepKind::Answer);
                drop(call);
                Ok(Some((self.generated(jsep, &sdp), None)))
            }
            Request::Process => self.process(&fields.read()?).map(Some),
            Request::Hangup => {
                self.push(Some(transaction), &event("hangingup"), None);
                self.handle.close_pc();
                self.call.end(&self.handle, &self.shared);
                Ok(None)
            }
            Request::Recording => {
                self.record(&Recording::read(fields)?)?;
                Ok(Some((event("recordingupdated"), None)))
            }
            Request::Keyframe => {
                let KeyframeRequest { user, peer } = fields.read()?;
                self.call.lock().media.request_keyframe(user, peer);
                Ok(Some((event("keyframesent"), None)))
            }
            Request::Forward => {
                self.forward(ForwardRequest::read(fields)?, transaction);
                Ok(None)
            }
            Request::StopForward => {
                let id = fields.required("stream_id")?;
                if !self.call.lock().media.stop_forward(id) {
                    return Err(Refusal::NoSuchStream(id));
                }
                let stopped = event("stop_rtp_forward").with("stream_id", id);
                self.notify(|| stopped.clone());
                Ok(Some((stopped, None)))
            }
            Request::ListForwarders => {
                let forwarders = self.call.lock().media.forwarders();
                let result = event("forwarders").with("rtp_forwarders", forwarders);
                Ok(Some((result, None)))
            }
        }
    }

    fn generated(&self, jsep: &Jsep, sdp: &str) -> Object {
        let update = jsep.update;
        let generated = event("generated")
            .with("type", jsep.kind.as_str())
            .with("sdp", sdp)
            .with_some("update", update.then_some(true))
            .with("unique_id", self.unique_id.as_str());
        if !update {
            self.notify(|| generated.clone());
        }
        generated
    }

    fn process(&self, process: &Process<'_>) -> Result<Outcome, Refusal> {
        let (kind, srtp) = process.check()?;
        let mut call = self.call.lock();
        let update = process.update || call.runs();
        let taken = match kind {
            JsepKind::Offer => call.media.take_offer(process.sdp, srtp),
            JsepKind::Answer => call.media.accept_answer(process.sdp, srtp),
        };
        let taken = taken.map_err(|error| Refusal::of("process request", error))?;
        call.go_on(kind == JsepKind::Answer);
        drop(call);
        if !update {
            self.notify(|| {
                event("processed")
                    .with("type", kind.as_str())
                    .with("sdp", process.sdp)
                    .with("unique_id", self.unique_id.as_str())
            });
        }
        let processed = event("processed")
            .with_some("srtp", named(taken.srtp))
            .with_some("update", update.then_some(true))
            .with("unique_id", self.unique_id.as_str());
        Ok((processed, Some(taken.jsep)))
    }

    fn record(&self, recording: &Recording<'_>) -> Result<(), Refusal> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let micros = since.map_or(0, |since| since.as_micros());
        let request = RecordingRequest {
            action: recording.action,
            sides: recording.sides,
            filename: recording.filename.map(str::to_owned),
            default_name: format!("nosip-{}-{micros}", self.handle.id()),
            format: recording.format,
            tell: |event| result(event),
        };
        let mut call = self.call.lock();
        call.media.record(&request).map_err(Refusal::Call)
    }

    /// Starts forwarders when the addresses of all hosts are known.
    fn forward(&self, request: ForwardRequest, transaction: &str) {
        let (handle, shared) = (self.handle.clone(), Arc::clone(&self.shared));
        let (call, transaction) = (self.call.clone(), transaction.to_owned());
        tokio::spawn(async move {
            let resolved = request.resolve(&shared.settings.networks).await;
            let forwarded = resolved.map_err(Refusal::from).and_then(|resolved| {
                let mut call = call.lock();
                call.media.forward(resolved).map_err(Refusal::Call)
            });
            let told = match forwarded {
                Ok(forwarders) => {
                    let forwarded = event("rtp_forward").with("forwarders", forwarders);
                    handle.notify(|| forwarded.clone().into());
                    result(forwarded)
                }
                Err(refusal) => refusal.to_json(),
            };
            handle.push(Some(&transaction), told, None);
        });
    }

    fn notify(&self, event: impl FnOnce() -> Object) {
        self.handle.notify(|| event().into());
    }

    fn push(&self, transaction: Option<&str>, told: &Object, jsep: Option<LocalJsep>) {
        self.handle.push(transaction, result(told.clone()), jsep);
    }
}

impl PluginHandle for Attached {
    fn message(&mut self, message: Message) -> Reply {
        let transaction = Some(message.transaction.as_str());
        match self.request(&message) {
            Ok(Some((told, jsep))) => self.push(transaction, &told, jsep),
            Ok(None) => {}
            Err(refusal) => {
                self.shared.counts.refuse(&refusal);
                self.handle.push(transaction, refusal.to_json(), None);
            }
        }
        Reply::Ack(None)
    }

    fn event(&mut self, event: HandleEvent) {
        match event {
            HandleEvent::Up => self.call.lock().media.request_keyframe(true, true),
            HandleEvent::Hangup(_) => self.call.end(&self.handle, &self.shared),
            HandleEvent::Media { .. }
            | HandleEvent::SlowLink { .. }
            | HandleEvent::Talking { .. }
            | HandleEvent::Speech { .. }
            | HandleEvent::Layer { .. }
            | HandleEvent::Paused { .. }
            | HandleEvent::Remb(_)
            | HandleEvent::DataChannel { .. }
            | HandleEvent::Data(_) => {}
        }
    }

    fn query(&self) -> Value {
        let call = self.call.lock();
        let media = &call.media;
        let said = |is: bool| call.has_begun().then_some(if is { "yes" } else { "no" });
        Object::new()
            .with("unique_id", self.unique_id.as_str())
            .with_some("srtp-required", said(media.is_srtp_required()))
            .with_some("sdes-local", said(media.seals(None)))
            .with_some("sdes-remote", said(media.opens(None)))
            .with_some("recording", media.recordings())
            .with("legs", media.legs_json())
            .with("hangingup", 0)
            .with("destroyed", 0)
            .into()
    }
}

fn event(name: &str) -> Object {
    Object::new().with("event", name)
}

/// Makes an event for clients.
fn result(told: Object) -> Value {
    json!({ "nosip": "event", "result": Value::from(told) })
}
