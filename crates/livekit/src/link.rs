//! A participant's session and handles in the gateway.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use portunus_core::{Client, Gateway, HandleId, Outbox, Requester, Rights, SessionId};
use serde_json::{Value, json};

use crate::hall::{Member, Role};
use crate::ids::IdKind;
use crate::plugin::{Attached, LiveKitPlugin, PACKAGE};

/// The transport in events.
const TRANSPORT: &str = "portunus.transport.livekit";

/// A session of the gateway, with a handle for each PeerConnection. Dropping it ends all.
#[derive(Debug)]
pub(crate) struct Link {
    gateway: Gateway,
    client: Client,
    session: SessionId,
    publisher: HandleId,
    subscriber: Option<HandleId>,
    transactions: AtomicU64,
}

/// The core refused a request, with this code and text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text} ({code})")]
pub(crate) struct LinkError {
    pub(crate) code: u64,
    pub(crate) text: String,
}

impl Link {
    /// Makes the session and the handles of a participant. `single` means one PeerConnection.
    pub(crate) async fn open(
        gateway: &Gateway,
        requester: Requester,
        plugin: &LiveKitPlugin,
        member: &Arc<Member>,
        single: bool,
    ) -> Result<Self, LinkError> {
        let (client, messages) = Client::internal(TRANSPORT, requester, Rights::NONE);
        tokio::spawn(discard(messages));
        // From here on dropping it cleans up.
        let mut link = Link {
            gateway: gateway.clone(),
            client,
            session: SessionId(0),
            publisher: HandleId(0),
            subscriber: None,
            transactions: AtomicU64::new(1),
        };
        let created = link.request(json!({ "janus": "create" })).await?;
        link.session = SessionId(id_in(&created)?);
        link.publisher = link.attach(plugin, member, Role::Publisher).await?;
        if !single {
            let subscriber = link.attach(plugin, member, Role::Subscriber).await?;
            link.subscriber = Some(subscriber);
        }
        Ok(link)
    }

    async fn attach(
        &self,
        plugin: &LiveKitPlugin,
        member: &Arc<Member>,
        role: Role,
    ) -> Result<HandleId, LinkError> {
        let name = IdKind::Participant.random();
        let owner = Attached {
            member: member.clone(),
            role,
        };
        plugin.expect(&name, owner);
        let request = json!({
            "janus": "attach",
            "session_id": self.session.0,
            "plugin": PACKAGE,
            "opaque_id": name,
        });
        let attached = self.request(request).await;
        plugin.forget(&name);
        Ok(HandleId(id_in(&attached?)?))
    }

    /// Passes a description of the client to the core. The plugin keeps it for the session.
    pub(crate) async fn describe(
        &self,
        role: Role,
        kind: &str,
        sdp: &str,
        e2ee: bool,
    ) -> Result<(), LinkError> {
        let rid_order = rid_order(sdp);
        let jsep = json!({ "type": kind, "sdp": sdp, "e2ee": e2ee, "rid_order": rid_order });
        let message = json!({ "janus": "message", "body": {}, "jsep": jsep });
        self.on_handle(role, message).await.map(drop)
    }

    /// Passes a candidate of the client to the core.
    pub(crate) async fn trickle(&self, role: Role, candidate: Value) -> Result<(), LinkError> {
        let message = json!({ "janus": "trickle", "candidate": candidate });
        self.on_handle(role, message).await.map(drop)
    }

    async fn on_handle(&self, role: Role, mut message: Value) -> Result<Value, LinkError> {
        let handle = match role {
            Role::Publisher => self.publisher,
            Role::Subscriber => self.subscriber.unwrap_or(self.publisher),
        };
        if let Some(members) = message.as_object_mut() {
            members.insert("session_id".to_owned(), self.session.0.into());
            members.insert("handle_id".to_owned(), handle.0.into());
        }
        self.request(message).await
    }

    async fn request(&self, mut message: Value) -> Result<Value, LinkError> {
        let transaction = self.transactions.fetch_add(1, Ordering::Relaxed);
        if let Some(members) = message.as_object_mut() {
            members.insert("transaction".to_owned(), transaction.to_string().into());
        }
        let reply = self.gateway.request_value(&self.client, message).await;
        let Some(error) = reply.get("error") else {
            return Ok(reply);
        };
        let text = error.get("reason").and_then(Value::as_str);
        Err(LinkError {
            code: error
                .get("code")
                .and_then(Value::as_u64)
                .unwrap_or_default(),
            text: text.unwrap_or_default().to_owned(),
        })
    }
}

/// Returns the order of a description's rids. Their names say it: clients in browsers write `q;h;f`,
/// those for other systems `f;h;q`.
fn rid_order(sdp: &str) -> &'static str {
    let rank = |rid: &str| match rid.trim_start_matches('~') {
        "q" | "0" => Some(0),
        "h" | "1" => Some(1),
        "f" | "2" => Some(2),
        _ => None,
    };
    let mut lists = sdp.lines().filter_map(|line| {
        let list = line.strip_prefix("a=simulcast:send ")?;
        let mut ranks = list.split([' ', ';']).map_while(rank);
        let first = ranks.next()?;
        Some((first, ranks.last()?))
    });
    match lists.next() {
        Some((first, last)) if first > last => "hml",
        _ => "lmh",
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.gateway.client_gone(&self.client);
    }
}

/// Takes the events of the core, which handles get as well.
async fn discard(mut messages: Outbox) {
    while messages.recv().await.is_some() {}
}

/// Returns the id in a reply: a number, or a string of digits.
fn id_in(reply: &Value) -> Result<u64, LinkError> {
    let id = reply.pointer("/data/id");
    let number = id.and_then(|id| id.as_u64().or_else(|| id.as_str()?.parse().ok()));
    number.ok_or_else(|| LinkError {
        code: 0,
        text: "the reply has no id".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_rids_say_their_order() {
        for (line, order) in [
            ("a=simulcast:send q;h;f", "lmh"),
            ("a=simulcast:send f;h;q", "hml"),
            ("a=simulcast:send ~f;~h;q recv a;b", "hml"),
            ("a=simulcast:send h;q", "hml"),
            ("a=simulcast:send q;h", "lmh"),
            ("a=simulcast:send 2;1;0", "hml"),
            ("a=simulcast:send q", "lmh"),
            ("a=simulcast:send low;high", "lmh"),
            ("a=simulcast:recv f;h;q", "lmh"),
            ("", "lmh"),
        ] {
            let sdp = format!("m=video 9\r\n{line}\r\na=mid:0\r\n");
            assert_eq!(rid_order(&sdp), order, "{line}");
        }
    }
}
