//! What other nodes tell of calls.

use portunus_core::media::ingest::IngestId;
use portunus_core::{JsepError, Mid, Object};
use serde_json::{Value, json};

use crate::calls::VideoCalls;
use crate::descriptions::with_rids;
use crate::far::{CallMessage, Described, FarData, Others, Unwilling};
use crate::request::Refusal;
use crate::users::{CallState, End, Line, User, UserId, Users, hangup};

/// The most calls of one other node.
const MOST: usize = 10_000;

/// A call that another node begins.
struct Invitation {
    id: u64,
    from: String,
    to: String,
    offer: Described,
    simulcast: Option<String>,
    e2ee: bool,
}

/// What the server does.
impl VideoCalls {
    /// Takes a message of another node.
    pub fn take(&self, node: &str, message: &[u8]) {
        let Some(others) = self.others() else { return };
        match CallMessage::parse(message) {
            Some(message) => self.message(others, node, message),
            None => tracing::warn!(node, "videocall: a malformed message is skipped"),
        }
    }

    /// Another node is reachable, or its connection was replaced: messages may be missing.
    pub fn resumed(&self, node: &str) {
        let Some(others) = self.others() else { return };
        let users = self.users();
        let far = users.of_node(node).into_iter();
        let calls = far.filter_map(|id| {
            let user = users.get(id)?;
            Some((user.far()?.call, is_accepted(&users, id)))
        });
        let calls = calls.collect();
        others.send(node, &CallMessage::Known { calls });
    }

    /// Another node is lost, and so are the calls with its users.
    pub fn lost(&self, node: &str) {
        let mut users = self.users();
        for far in users.of_node(node) {
            users.end_far(far, None);
        }
    }

    /// There is a new media link with a node, which has none of the sources of the former one.
    pub fn linked(&self, node: &str) {
        let mut users = self.users();
        for id in users.of_node(node) {
            if let Some(far) = users.far_mut(id) {
                far.take_again();
            }
            users.link_far(id);
        }
    }

    /// A source of another node has ended.
    pub fn source_ended(&self, ingest: IngestId) {
        let mut users = self.users();
        for id in users.all_far() {
            if let Some(far) = users.far_mut(id) {
                far.forget(ingest);
            }
        }
    }

    fn message(&self, others: &Others, node: &str, message: CallMessage) {
        let mut users = self.users();
        let users = &mut *users;
        let of_call = |users: &Users, id| users.of_call(node, id);
        match message {
            CallMessage::Invite {
                id,
                from,
                to,
                offer,
                simulcast,
                e2ee,
            } => {
                let invitation = Invitation {
                    id,
                    from,
                    to,
                    offer,
                    simulcast,
                    e2ee,
                };
                let answer = match users.invited(others, node, invitation) {
                    Ok(()) => CallMessage::Ringing { id },
                    Err(reason) => CallMessage::Refused { id, reason },
                };
                others.send(node, &answer);
            }
            CallMessage::Ringing { id } => {
                if let Some(callee) = of_call(users, id) {
                    users.rung(callee, Ok(()));
                }
            }
            CallMessage::Refused { id, reason } => {
                if let Some(callee) = of_call(users, id) {
                    users.rung(callee, Err(reason));
                }
            }
            CallMessage::Accepted { id, answer, e2ee } => {
                if let Some(callee) = of_call(users, id) {
                    users.accepted(callee, answer, e2ee);
                }
            }
            CallMessage::Update {
                id,
                is_offer,
                description,
                simulcast,
            } => {
                if let Some(far) = of_call(users, id) {
                    users.changed(far, is_offer, description, simulcast.as_deref());
                }
            }
            CallMessage::Settings { id, audio, video } => {
                if let Some(far) = of_call(users, id) {
                    users.wished(far, audio, video);
                }
            }
            CallMessage::Sources { id, offers } => {
                if let Some(id) = of_call(users, id) {
                    if let Some(far) = users.far_mut(id) {
                        far.receive(offers);
                    }
                    users.link_far(id);
                }
            }
            CallMessage::Data { id, message } => {
                if let Some(far) = of_call(users, id) {
                    users.heard(far, message);
                }
            }
            CallMessage::End { id, reason } => {
                if let Some(far) = of_call(users, id) {
                    users.end_far(far, reason.as_deref());
                }
            }
            CallMessage::Known { calls } => {
                for far in users.of_node(node) {
                    let call = users.get(far).and_then(|user| Some(user.far()?.call));
                    let accepted = is_accepted(users, far);
                    let is_known =
                        |(id, theirs): &(u64, bool)| Some(*id) == call && *theirs == accepted;
                    if !calls.iter().any(is_known) {
                        users.end_far(far, None);
                    }
                }
            }
            CallMessage::Later => {}
        }
    }
}

fn is_accepted(users: &Users, id: UserId) -> bool {
    let user = users.get(id);
    user.is_some_and(|user| matches!(user.call.state, CallState::InCall(_)))
}

impl Users {
    /// The node of a callee has said whether it rings. Tells the caller.
    fn rung(&mut self, callee: UserId, outcome: Result<(), Unwilling>) {
        let Some(transaction) = self.take_asked(callee) else {
            return;
        };
        let callee_name = self.get(callee).and_then(|it| it.name.clone());
        let Some(caller) = self.peer_of(callee) else {
            return;
        };
        let Some(me) = self.get(caller) else { return };
        let Some(handle) = me.handle().cloned() else {
            return;
        };
        let refused = |refusal: &Refusal| {
            json!({
                "videocall": "event",
                "error_code": refusal.code(),
                "error": refusal.to_string(),
            })
        };
        let result = |result: Value| json!({ "videocall": "event", "result": result });
        let data = match &outcome {
            Ok(()) => {
                let calling = json!({ "event": "calling" });
                handle.notify(|| calling.clone());
                result(calling)
            }
            Err(Unwilling::Busy) => result(hangup(me.name.clone(), "User busy")),
            Err(Unwilling::NoSuchUser) => {
                refused(&Refusal::NoSuchUser(callee_name.unwrap_or_default()))
            }
            Err(Unwilling::Offer(reason)) => refused(&Refusal::FarOffer(reason.clone())),
        };
        handle.push(Some(&transaction), data, None);
        if outcome.is_err() {
            self.end_call(caller, End::Gone);
            handle.close_pc();
        }
    }

    /// A user of another node calls one of this node.
    fn invited(
        &mut self,
        others: &Others,
        node: &str,
        invitation: Invitation,
    ) -> Result<(), Unwilling> {
        let Invitation {
            id,
            from,
            to,
            offer,
            simulcast,
            e2ee,
        } = invitation;
        let callee = self.named(&to).ok_or(Unwilling::NoSuchUser)?;
        let user = self.get(callee).ok_or(Unwilling::NoSuchUser)?;
        let is_known = self.of_call(node, id).is_some();
        let is_full = self.of_node(node).len() >= MOST;
        if user.call.state != CallState::Idle || is_known || is_full {
            return Err(Unwilling::Busy);
        }
        let malformed = || Unwilling::Offer("it is malformed".to_owned());
        let description = offer.description().ok_or_else(malformed)?;
        let handle = user.handle().ok_or(Unwilling::NoSuchUser)?;
        let local = match handle.offer(description.clone(), false) {
            Ok(local) => local.with_e2ee(e2ee),
            Err(JsepError::Closing) => return Err(Unwilling::Busy),
            Err(error) => return Err(Unwilling::Offer(error.to_string())),
        };
        let incoming = json!({ "event": "incomingcall", "username": from });
        user.push(None, incoming, Some(local));
        let caller = self.add_far(others, node, id, &from);
        if let Some(callee) = self.get_mut(callee) {
            callee.call.state = CallState::Ringing(caller);
        }
        if let Some(far) = self.far_mut(caller) {
            far.note_lines(&description);
        }
        if let Some(caller) = self.get_mut(caller) {
            caller.call.state = CallState::Calling(callee);
            caller.call.e2ee = e2ee;
            caller.call.caller = true;
            caller.call.simulcast = simulcast.as_deref().and_then(Mid::new);
        }
        Ok(())
    }

    /// A user of another node has accepted the call of one of this node.
    fn accepted(&mut self, callee: UserId, answer: Described, e2ee: bool) {
        let Some(caller) = self.peer_of(callee) else {
            return;
        };
        let is_calling = |user: &User| user.call.state == CallState::Calling(callee);
        let Some(me) = self.get(caller).filter(|me| is_calling(me)) else {
            return;
        };
        let (Line::Here(handle), Some(description)) = (&me.line, answer.description()) else {
            return self.end_both(callee);
        };
        let local = match handle.answer(with_rids(&description, me)) {
            Ok(local) => local.with_e2ee(e2ee),
            Err(error) => {
                tracing::info!(%error, "videocall: an answer of another node does not fit");
                return self.end_both(callee);
            }
        };
        let name = self.get(callee).and_then(|it| it.name.clone());
        let accepted = Object::new()
            .with("event", "accepted")
            .with_some("username", name);
        me.push(None, accepted, Some(local));
        if let Some(far) = self.far_mut(callee) {
            far.note_lines(&description);
        }
        for (user, peer) in [(callee, caller), (caller, callee)] {
            let user_answers = user == callee;
            if let Some(user) = self.get_mut(user) {
                user.call.state = CallState::InCall(peer);
                user.call.e2ee |= e2ee;
                user.call.note_answer(&description, user_answers);
                if user.call.settings.bitrate > 0 {
                    user.cap_bitrate();
                }
            }
        }
        self.link(callee, caller);
    }

    /// A user of another node changes a call.
    fn changed(
        &mut self,
        far: UserId,
        is_offer: bool,
        description: Described,
        simulcast: Option<&str>,
    ) {
        let (Some(peer), Some(description)) = (self.peer_of(far), description.description()) else {
            return;
        };
        if let Some(far) = self.far_mut(far) {
            far.note_lines(&description);
        }
        if let Some(user) = self.get_mut(far)
            && is_offer
            && user.call.caller
        {
            user.call.simulcast = simulcast.and_then(Mid::new);
        }
        let Some(me) = self.get(peer) else { return };
        let Line::Here(handle) = &me.line else { return };
        let local = match is_offer {
            true => handle.offer(description.clone(), false),
            false => handle.answer(with_rids(&description, me)),
        };
        match local {
            Ok(local) => me.push(None, json!({ "event": "update" }), Some(local)),
            Err(error) => {
                return tracing::info!(%error, "videocall: a change by another node does not fit");
            }
        }
        if !is_offer {
            self.updated(far, peer, &description);
        }
    }

    /// A user of another node has changed what it sends.
    fn wished(&mut self, far: UserId, audio: bool, video: bool) {
        if let Some(user) = self.get_mut(far) {
            user.call.settings.audio = audio;
            user.call.settings.video = video;
        }
        if let Some(peer) = self.peer_of(far) {
            self.apply_settings(far, peer);
        }
    }

    /// Takes a message of the data channel of a user of another node.
    fn heard(&self, far: UserId, message: FarData) {
        let peer = self.peer_of(far).and_then(|peer| self.get(peer));
        let peer = peer.filter(|peer| peer.call.data_ready);
        let handle = peer.and_then(|peer| peer.handle());
        if let (Some(handle), Some(message)) = (handle, message.message()) {
            handle.send_data(message);
        }
    }

    /// Ends a call on both nodes.
    fn end_both(&mut self, far: UserId) {
        if let Some(far) = self.get(far).and_then(User::far) {
            far.send_end(None);
        }
        self.end_far(far, None);
    }

    /// Ends a call of a user of another node: on request, with a text, or because it is gone.
    fn end_far(&mut self, far: UserId, reason: Option<&str>) {
        self.end_call(far, reason.map_or(End::Gone, End::Request));
        // It may be there without a call.
        self.remove(far);
    }

    /// Links a user of another node with its partner.
    fn link_far(&mut self, far: UserId) {
        let is_linked = is_accepted(self, far);
        if let Some(peer) = self.peer_of(far).filter(|_| is_linked) {
            self.link(far, peer);
        }
    }
}
