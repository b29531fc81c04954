//! Calls: participants register at the far end by the SIP plugin, and call it.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use portunus_sdp::CodecName;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::hall::STAGGER;
use super::join_error::{JoinError, PATIENCE};
use super::member::Joined;
use super::shared::{CallSetUp, Seat, Shared};
use crate::client::{ClientError, Handle, Session, description, plugin_data};
use crate::farend::{FarEnd, PASSWORD};
use crate::source::{SourceConfig, spread};
use crate::speech::Script;
use crate::viewer::{Hearing, Speaking};

/// The plugin's name.
pub(in crate::scenario) const SIP: &str = "janus.plugin.sip";

/// What all callers share.
#[derive(Debug)]
pub(in crate::scenario) struct Line {
    pub(in crate::scenario) end: LineEnd,
    pub(in crate::scenario) codec: CodecName,
    pub(in crate::scenario) sound: Sound,
    /// The accounts so far.
    accounts: AtomicU64,
}

/// Whom callers call.
#[derive(Debug)]
pub(in crate::scenario) enum LineEnd {
    /// hammer's own far end, at which each registers an account.
    Own(Arc<FarEnd>),
    /// Another server's address, such as a conference's. Each is a guest from this host.
    Other { uri: String, host: IpAddr },
}

/// The sound of a call.
#[derive(Debug)]
pub(in crate::scenario) enum Sound {
    /// Numbered packets, which return unchanged.
    Stamped(SourceConfig),
    /// Speech, which returns transcoded.
    Spoken(Arc<Script>),
}

/// An accepted call.
pub(in crate::scenario) struct Called {
    pub(in crate::scenario) call_id: String,
    pub(in crate::scenario) answer: String,
}

impl Line {
    /// Creates a line without accounts.
    pub(in crate::scenario) fn new(end: LineEnd, codec: CodecName, sound: Sound) -> Self {
        Self {
            end,
            codec,
            sound,
            accounts: AtomicU64::new(0),
        }
    }

    /// Registers a new account at the far end, or as a guest.
    pub(in crate::scenario) async fn register(&self, handle: &mut Handle) -> Result<(), JoinError> {
        let n = self.accounts.fetch_add(1, Ordering::Relaxed);
        let body = match &self.end {
            LineEnd::Own(far) => {
                let far = far.sip();
                json!({
                    "request": "register", "username": format!("sip:hammer{n}@{far}"),
                    "secret": PASSWORD, "proxy": format!("sip:{far}"),
                })
            }
            LineEnd::Other { host, .. } => json!({
                "request": "register", "type": "guest", "username": format!("sip:hammer{n}@{host}"),
            }),
        };
        let reply = handle.message(body, None).await?;
        // A guest is registered at once, by the reply itself.
        let event = plugin_data(&reply).pointer("/result/event");
        match event.and_then(Value::as_str) {
            Some("registered") => Ok(()),
            _ => awaited(handle, "registered").await.map(drop),
        }
    }

    /// Calls the far end.
    pub(in crate::scenario) async fn call(
        &self,
        handle: &mut Handle,
        offer: String,
    ) -> Result<Called, JoinError> {
        let uri = match &self.end {
            LineEnd::Own(far) => format!("sip:echo@{}", far.sip()),
            LineEnd::Other { uri, .. } => uri.clone(),
        };
        let body = json!({ "request": "call", "uri": uri });
        let offer = json!({ "type": "offer", "sdp": offer });
        let calling = handle.message(body, Some(offer)).await?;
        let call_id = plugin_data(&calling).pointer("/result/call_id");
        let call_id = call_id.and_then(Value::as_str).map(str::to_owned);
        let call_id = call_id.ok_or_else(|| ClientError::Malformed {
            request: "call".to_owned(),
            missing: "call_id",
        })?;
        let accepted = awaited(handle, "accepted").await?;
        let answer = description(&accepted, "call")?;
        Ok(Called { call_id, answer })
    }
}

impl Shared {
    /// Registers, calls, and waits for the far end's sound.
    pub(super) async fn call(&self, session: &Session, line: &Line) -> Result<Joined, JoinError> {
        let mut handle = session.attach(SIP).await?;
        line.register(&mut handle).await?;
        let id = self.next_id();
        let hearing = match &line.sound {
            Sound::Stamped(_) => None,
            Sound::Spoken(script) => Some(Hearing {
                clock_rate: script.codec.clock_rate(),
                keeps: false,
            }),
        };
        let address = match hearing {
            None => self.address(id),
            Some(hearing) => self.load.address(id, hearing.keeps),
        };
        let (offered, offer) = self.factory.offer_voice(address, line.codec, false)?;
        let asked = Instant::now();
        let called = line.call(&mut handle, offer).await?;
        let accepted = Instant::now();
        if let LineEnd::Own(far) = &line.end
            && let Some(far) = far.take_call(&called.call_id)
        {
            self.state().joins.set_ups.push(CallSetUp {
                asking: far.came.saturating_duration_since(asked),
                answering: accepted.saturating_duration_since(far.left),
            });
        }
        let mut prepared = offered.accept(&called.answer)?;
        let phase = spread(id);
        match &line.sound {
            Sound::Stamped(config) => prepared.send(config, phase),
            Sound::Spoken(script) => prepared.speak(Speaking {
                script: Arc::clone(script),
                from: (id as usize).wrapping_mul(STAGGER),
                weather: None,
                phase,
            }),
        }
        let seat = Seat {
            hearing,
            ..Seat::of(Vec::new())
        };
        let arrival = self.run(id, prepared, seat);
        let outcome = self.wait(id, arrival, Some(&mut handle)).await;
        self.kept(id, handle, outcome)
    }
}

/// Returns the plugin's next event with this name. The end of the call or registration is an error.
async fn awaited(handle: &mut Handle, name: &str) -> Result<Value, JoinError> {
    let coming = async {
        while let Some(event) = handle.events.recv().await {
            let result = plugin_data(&event).get("result");
            let text = |name: &str| result?.get(name)?.as_str();
            match text("event") {
                Some(told) if told == name => return Ok(event),
                Some("hangup" | "registration_failed") => {
                    let code = result.and_then(|result| result.get("code")?.as_i64());
                    let reason = text("reason").unwrap_or_default();
                    let reason = format!("{} {reason}", code.unwrap_or_default());
                    return Err(JoinError::HungUp(reason));
                }
                _ => {}
            }
        }
        Err(ClientError::Closed.into())
    };
    let outcome = timeout(PATIENCE, coming).await;
    outcome.unwrap_or_else(|_| {
        Err(JoinError::Client(ClientError::Timeout {
            request: name.to_owned(),
            after: PATIENCE,
        }))
    })
}
