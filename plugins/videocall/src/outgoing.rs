//! What users of this node ask of the others.

use std::collections::BTreeSet;
use std::time::Duration;

use portunus_core::{Fields, Message};
use serde_json::json;

use crate::descriptions::{offer_of, without_rids};
use crate::far::{CallMessage, ClaimError, Described, Others};
use crate::request::{Refusal, Request};
use crate::user::Side;
use crate::users::{CallState, End, Line, UserId, Users};

/// How long the node of a callee has to say that it rings.
const PATIENCE: Duration = Duration::from_secs(5);

impl Side {
    /// Does a request that concerns other nodes. Returns the message if this node can answer it.
    pub(crate) fn ask_others(
        &self,
        others: &Others,
        request: &Request,
        message: Message,
    ) -> Option<Message> {
        let (side, others) = (self.clone(), others.clone());
        match request {
            Request::List => {
                tokio::spawn(async move { side.list(&others, &message.transaction).await });
            }
            Request::Register => {
                let name = Fields(&message.body).required::<&str>("username").ok();
                let claimed = name.map(|name| self.calls.users().claim(self.id, name));
                let (Some(name), Some(Ok(()))) = (name, claimed) else {
                    return Some(message);
                };
                let name = name.to_owned();
                tokio::spawn(async move {
                    let claimed = others.claim(name.clone()).await;
                    side.claimed(&others, &name, claimed, &message.transaction);
                });
            }
            Request::Call => {
                let is_here = {
                    let users = self.calls.users();
                    let caller = self.caller(&users, &message);
                    caller.map_or(true, |(_, name)| users.named(name).is_some())
                };
                if is_here {
                    return Some(message);
                }
                tokio::spawn(async move { side.call_far(&others, message).await });
            }
            Request::Accept | Request::Set | Request::Hangup => return Some(message),
        }
        None
    }

    async fn list(&self, others: &Others, transaction: &str) {
        let elsewhere = others.list().await;
        let users = self.calls.users();
        let mut names: BTreeSet<&str> = users.names().collect();
        names.extend(elsewhere.iter().map(String::as_str));
        self.tell(&users, transaction, Ok(json!({ "list": names })));
    }

    /// The cluster has said whether this node has a name.
    fn claimed(
        &self,
        others: &Others,
        name: &str,
        claimed: Result<(), ClaimError>,
        transaction: &str,
    ) {
        let mut users = self.calls.users();
        let outcome = match claimed {
            Ok(()) if users.register_claimed(self.id, name) => {
                Ok(json!({ "event": "registered", "username": name }))
            }
            Ok(()) => {
                // The client is gone.
                others.release(name.to_owned());
                return;
            }
            Err(error) => {
                users.forget_claim(self.id, name);
                Err(match error {
                    ClaimError::Taken => Refusal::Taken(name.to_owned()),
                    ClaimError::Unknown(reason) => Refusal::Unclaimed(reason),
                })
            }
        };
        self.tell(&users, transaction, outcome);
    }

    /// Calls a user that is none of this node.
    async fn call_far(&self, others: &Others, message: Message) {
        let name = Fields(&message.body).required::<&str>("username");
        let name = name.unwrap_or_default().to_owned();
        let node = others.find(name.clone()).await;
        let call = {
            let mut users = self.calls.users();
            match node {
                // It may have come here meanwhile.
                _ if users.named(&name).is_some() => None,
                Some(node) => Some(self.invite(&mut users, others, &node, &message)),
                None => Some(Err(Refusal::NoSuchUser(name))),
            }
        };
        match call {
            None => self.finish(&message, Ok(Request::Call)),
            Some(Err(refusal)) => self.fail_call(&message.transaction, refusal),
            Some(Ok(callee)) => {
                tokio::time::sleep(PATIENCE).await;
                let transaction = self.calls.users().take_asked(callee);
                if let Some(transaction) = transaction {
                    self.fail_call(&transaction, Refusal::Unreachable);
                }
            }
        }
    }

    /// Sends a call to the node of the callee. Returns the callee.
    fn invite(
        &self,
        users: &mut Users,
        others: &Others,
        node: &str,
        message: &Message,
    ) -> Result<UserId, Refusal> {
        let (my_name, name) = self.caller(users, message)?;
        let jsep = offer_of(message)?;
        let call = rand::random();
        let callee = users.add_far(others, node, call, name);
        self.begin_call(users, callee, jsep, message);
        let me = users.get(self.id);
        let simulcast = me.and_then(|me| me.call.simulcast);
        let settings = me.map(|me| (me.call.settings.audio, me.call.settings.video));
        if let Some(callee) = users.get_mut(callee) {
            callee.call.state = CallState::Ringing(self.id);
            callee.asked = Some(message.transaction.clone());
            let Line::There(far) = &callee.line else {
                return Err(Refusal::Unreachable);
            };
            far.send(&CallMessage::Invite {
                id: call,
                from: my_name,
                to: name.to_owned(),
                offer: Described::of(&without_rids(&jsep.description)),
                simulcast: simulcast.map(|mid| mid.as_str().to_owned()),
                e2ee: jsep.e2ee,
            });
            if let Some((audio, video)) = settings {
                let id = call;
                far.send(&CallMessage::Settings { id, audio, video });
            }
        }
        Ok(callee)
    }

    /// Tells the client that nobody was called, and closes its PeerConnection.
    fn fail_call(&self, transaction: &str, refusal: Refusal) {
        let mut users = self.calls.users();
        let closes = refusal.ends_attempt();
        self.tell(&users, transaction, Err(refusal));
        if closes {
            users.end_call(self.id, End::Gone);
            self.handle.close_pc();
        }
    }
}
