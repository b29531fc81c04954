//! A plugin with one stream: 7 can be published by one at a time, and watched by all.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use portunus_core::sdp::{
    AnswerOptions, CodecName, Description, Direction, Kind, MediaOffer, OfferOptions,
};
use portunus_core::{
    Broadcast, Fields, Handle, HandleEvent, HandleId, LocalJsep, Message, Plugin, PluginHandle,
    PluginInfo, Refusal, Reply, SessionId, Stream,
};
use serde_json::{Value, json};
use tokio::sync::Notify;

/// The token of stream 9, which has one.
pub const TOKEN: &str = "let-me-in";

#[derive(Default)]
pub struct Stage {
    published: Arc<AtomicBool>,
    /// All attached clients, in order.
    pub guests: Mutex<Vec<(SessionId, HandleId)>>,
    /// Answers of viewers of the slow stream that have come.
    pub answers: Arc<Notify>,
    /// Lets the slow stream take one.
    pub release: Arc<Notify>,
}

impl Plugin for Stage {
    fn info(&self) -> PluginInfo {
        PluginInfo {
            package: "test.plugin.stage",
            name: "Stage",
            description: "One stream.",
            version: 1,
            version_string: "1",
        }
    }

    fn attach(&self, handle: Handle) -> Box<dyn PluginHandle> {
        let guest = (handle.session_id(), handle.id());
        self.guests.lock().unwrap().push(guest);
        Box::new(Guest {
            handle,
            published: self.published.clone(),
            publishes: Mutex::new(false),
            watched: String::new(),
            answers: self.answers.clone(),
            release: self.release.clone(),
        })
    }

    fn broadcast(&self) -> Option<&dyn Broadcast> {
        Some(self)
    }
}

impl Broadcast for Stage {
    fn name(&self) -> &'static str {
        "stage"
    }

    fn publish(&self, stream: &Stream<'_>) -> Option<Value> {
        Some(json!({ "request": "publish", "id": stream.id, "token": stream.token }))
    }

    fn watch(&self, stream: &Stream<'_>) -> Option<Value> {
        Some(json!({ "request": "watch", "id": stream.id, "token": stream.token }))
    }

    fn start(&self) -> Value {
        json!({ "request": "start" })
    }

    fn refusal(&self, error_code: u64) -> Refusal {
        match error_code {
            1 => Refusal::NotFound,
            2 => Refusal::Unauthorized,
            3 => Refusal::Conflict,
            4 => Refusal::Unusable,
            5 => Refusal::Unavailable,
            7 => Refusal::Parameter,
            _ => Refusal::Internal,
        }
    }
}

struct Guest {
    handle: Handle,
    published: Arc<AtomicBool>,
    publishes: Mutex<bool>,
    watched: String,
    answers: Arc<Notify>,
    release: Arc<Notify>,
}

impl PluginHandle for Guest {
    fn message(&mut self, message: Message) -> Reply {
        if message.body["request"] == "watch" {
            self.watched = message.body["id"].as_str().unwrap().to_owned();
        }
        if message.body["request"] == "start" && self.watched == "slow" {
            self.answers.notify_one();
            let (handle, release) = (self.handle.clone(), self.release.clone());
            tokio::spawn(async move {
                release.notified().await;
                let data = json!({ "stage": "ok" });
                handle.push(Some(&message.transaction), data, None);
            });
            return Reply::Ack(None);
        }
        let (data, jsep) = match self.outcome(&message) {
            Ok(jsep) => (json!({ "stage": "ok" }), jsep),
            Err(0) => return Reply::Ack(None),
            Err(code) => (
                json!({ "error_code": code, "error": "The stage says no" }),
                None,
            ),
        };
        self.handle.push(Some(&message.transaction), data, jsep);
        Reply::Ack(None)
    }

    fn event(&mut self, event: HandleEvent) {
        if matches!(event, HandleEvent::Hangup(_))
            && std::mem::take(&mut *self.publishes.lock().unwrap())
        {
            self.published.store(false, Ordering::Relaxed);
        }
    }
}

impl Guest {
    /// The error is the code; 0 stands for silence.
    fn outcome(&self, message: &Message) -> Result<Option<LocalJsep>, u64> {
        let fields = Fields(&message.body);
        let request = fields.required_string("request").unwrap();
        if request == "start" {
            return match self.watched.as_str() {
                "fickle" => Err(6),
                _ => Ok(None),
            };
        }
        let token = message.body["token"].as_str();
        match fields.required_string("id").unwrap() {
            "7" => {}
            "slow" | "fickle" if request == "watch" => {}
            "9" if token == Some(TOKEN) => {}
            "9" => return Err(2),
            "busy" => return Err(5),
            "broken" => return Err(6),
            "silent" => return Err(0),
            "misspelt" => return Err(7),
            _ => return Err(1),
        }
        if request == "publish" {
            if self.published.swap(true, Ordering::Relaxed) {
                return Err(3);
            }
            *self.publishes.lock().unwrap() = true;
        }
        let jsep = match &message.jsep {
            Some(jsep) => {
                let mut wish = AnswerOptions::default();
                wish.video.only(CodecName::Vp8);
                self.handle
                    .answer(Description::answer(&jsep.description, &wish))
            }
            None => {
                let mut video = MediaOffer::new(Kind::Video, Direction::SendOnly);
                video.add_codec(CodecName::Vp8, None, None);
                let offer = OfferOptions {
                    media: vec![video],
                    ..OfferOptions::default()
                };
                self.handle.offer(Description::offer(offer), false)
            }
        };
        Ok(Some(jsep.unwrap()))
    }
}
