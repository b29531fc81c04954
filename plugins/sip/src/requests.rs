//! What clients may ask for.

use portunus_core::{Fields, Message, Reach, Requests, Right, Rights};

use crate::page::PageId;
use crate::phones::Phones;
use crate::refusal::Refusal;

/// All requests, and what each reaches beyond the call.
pub const REQUESTS: Requests = Requests(&[
    ("register", Reach::Call),
    ("unregister", Reach::Call),
    ("call", Reach::Call),
    ("accept", Reach::Call),
    ("progress", Reach::Call),
    ("send_ringing", Reach::Call),
    ("decline", Reach::Call),
    ("hangup", Reach::Call),
    ("update", Reach::Call),
    ("hold", Reach::Call),
    ("unhold", Reach::Call),
    ("info", Reach::Call),
    ("dtmf_info", Reach::Call),
    ("message", Reach::Call),
    ("transfer", Reach::Call),
    ("subscribe", Reach::Call),
    ("unsubscribe", Reach::Call),
    ("publish", Reach::Call),
    ("unpublish", Reach::Call),
    ("recording", Reach::Said(begins)),
    ("keyframe", Reach::Call),
    ("rtp_forward", Reach::Beyond(Right::Forward)),
    ("stop_rtp_forward", Reach::Beyond(Right::Forward)),
    ("listforwarders", Reach::Beyond(Right::Forward)),
    ("reset", Reach::Call),
    ("lines", Reach::Call),
    ("move", Reach::Call),
]);

/// To begin a recording, or to go on with one, makes files.
fn begins(fields: Fields<'_>) -> Rights {
    let action = fields.string("action").ok().flatten().unwrap_or_default();
    let action = action.to_ascii_lowercase();
    Rights::if_so(matches!(action.as_str(), "start" | "resume"), Right::Record)
}

impl Phones {
    /// Follows a request of a page.
    pub(crate) fn request(&mut self, me: PageId, message: &Message) -> Result<(), Refusal> {
        let fields = Fields(&message.body);
        let name = fields.required_string("request")?;
        let lower = name.to_ascii_lowercase();
        REQUESTS.check(&lower, fields, message.rights)?;
        if let Some(page) = self.page_mut(me) {
            page.is_trusted = message.rights.may(Right::Forward);
        }
        match lower.as_str() {
            "register" => self.register(me, message),
            "unregister" => self.unregister(me, message),
            "call" => self.call(me, message),
            "accept" => self.accept(me, message),
            "progress" => self.progress(me, message),
            "send_ringing" => self.send_ringing(me, message),
            "decline" => self.decline(me, message),
            "hangup" => self.hangup(me, message),
            "update" => self.update(me, message),
            "hold" => self.hold(me, message, true),
            "unhold" => self.hold(me, message, false),
            "info" => self.info(me, message),
            "dtmf_info" => self.dtmf_info(me, message),
            "message" => self.message(me, message),
            "transfer" => self.transfer(me, message),
            "subscribe" => self.subscribe(me, message),
            "unsubscribe" => self.unsubscribe(me, message),
            "publish" => self.publish(me, message),
            "unpublish" => self.unpublish(me, message),
            "recording" => self.recording(me, message),
            "keyframe" => self.keyframe(me, message),
            "rtp_forward" => self.forward(me, message),
            "stop_rtp_forward" => self.stop_forwarding(me, message),
            "listforwarders" => self.forwarders(me, message),
            "reset" => self.reset(me, message),
            "lines" => self.lines(me, message),
            "move" => self.take_call(me, message),
            _ => Err(Refusal::UnknownRequest(name.to_owned())),
        }
    }

    /// `reset`: Janus clears flags with it that can be left over; there are none here.
    fn reset(&mut self, me: PageId, message: &Message) -> Result<(), Refusal> {
        self.answer(me, message, "reset");
        Ok(())
    }
}
