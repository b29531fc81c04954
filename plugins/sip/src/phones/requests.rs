//! Requests of pages.

use portunus_core::{Asked, Fields, Message, Right};

use super::Phones;
use crate::refusal::Refusal;
use crate::requests::Request;
use crate::status::PageId;

impl Phones {
    /// Executes a request of a page.
    pub(crate) fn request(&mut self, me: PageId, message: &Message) -> Result<(), Refusal> {
        let fields = Fields(&message.body);
        let name = fields.required("request")?;
        let asked = Asked::named(name).ok_or_else(|| Refusal::UnknownRequest(name.to_owned()))?;
        let request = asked.permit(fields, message.rights)?;
        if let Some(page) = self.page_mut(me) {
            page.is_trusted = message.rights.may(Right::Forward);
        }
        match request {
            Request::Register => self.register(me, message),
            Request::Unregister => self.unregister(me, message),
            Request::Call => self.call(me, message),
            Request::Accept => self.accept(me, message),
            Request::Progress => self.progress(me, message),
            Request::SendRinging => self.send_ringing(me, message),
            Request::Decline => self.decline(me, message),
            Request::Hangup => self.hangup(me, message),
            Request::Update => self.update(me, message),
            Request::Hold => self.hold(me, message, true),
            Request::Unhold => self.hold(me, message, false),
            Request::Info => self.info(me, message),
            Request::DtmfInfo => self.dtmf_info(me, message),
            Request::Message => self.message(me, message),
            Request::Transfer => self.transfer(me, message),
            Request::Subscribe => self.subscribe(me, message),
            Request::Unsubscribe => self.unsubscribe(me, message),
            Request::Publish => self.publish(me, message),
            Request::Unpublish => self.unpublish(me, message),
            Request::Recording => self.recording(me, message),
            Request::Keyframe => self.keyframe(me, message),
            Request::Forward => self.forward(me, message),
            Request::StopForward => self.stop_forwarding(me, message),
            Request::ListForwarders => self.forwarders(me, message),
            Request::Reset => self.reset(me, message),
            Request::Lines => self.lines(me, message),
            Request::Move => self.take_call(me, message),
        }
    }

    /// `reset`: Janus clears stale flags with it; there are none here.
    fn reset(&mut self, me: PageId, message: &Message) -> Result<(), Refusal> {
        self.answer(me, message, "reset");
        Ok(())
    }
}
