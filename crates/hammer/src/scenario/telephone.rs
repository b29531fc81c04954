//! Requests of the SIP plugin.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use portunus_sdp::CodecName;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::crowd::{JoinError, PATIENCE};
use super::videoroom::description;
use crate::client::{ClientError, Handle, plugin_data};
use crate::farend::{FarEnd, PASSWORD};
use crate::source::SourceConfig;
use crate::speech::Script;

/// The plugin.
pub(super) const SIP: &str = "janus.plugin.sip";

/// What all who call have in common.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) far: Arc<FarEnd>,
    pub(super) codec: CodecName,
    pub(super) sound: Sound,
    /// Accounts so far.
    accounts: AtomicU64,
}

/// What is said.
#[derive(Debug)]
pub(super) enum Sound {
    /// What comes back as it was sent.
    Stamped(SourceConfig),
    /// Speech, which comes back as something else.
    Spoken(Arc<Script>),
}

/// A call that was accepted.
pub(super) struct Called {
    pub(super) call_id: String,
    pub(super) answer: String,
}

impl Line {
    /// Nobody has an account yet.
    pub(super) fn new(far: Arc<FarEnd>, codec: CodecName, sound: Sound) -> Self {
        Self {
            far,
            codec,
            sound,
            accounts: AtomicU64::new(0),
        }
    }

    /// Registers an account of its own at the far end.
    pub(super) async fn register(&self, handle: &mut Handle) -> Result<(), JoinError> {
        let (far, n) = (
            self.far.sip(),
            self.accounts.fetch_add(1, Ordering::Relaxed),
        );
        let body = json!({
            "request": "register", "username": format!("sip:hammer{n}@{far}"), "secret": PASSWORD,
            "proxy": format!("sip:{far}"),
        });
        handle.message(body, None).await?;
        awaited(handle, "registered").await.map(drop)
    }

    /// Calls the far end.
    pub(super) async fn call(
        &self,
        handle: &mut Handle,
        offer: String,
    ) -> Result<Called, JoinError> {
        let uri = format!("sip:echo@{}", self.far.sip());
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

/// The next event of the plugin with this name; what ends a call or a registration is an error.
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
