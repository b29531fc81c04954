//! Requests of pages that concern their phone alone.

use portunus_core::{Message, Right};

use super::Phone;
use crate::refusal::Refusal;
use crate::requests::Request;
use crate::status::PageId;

impl Phone {
    /// Notes the rights of a page's last request.
    pub(crate) fn note_rights(&mut self, me: PageId, message: &Message) {
        if let Some(page) = self.page_mut(me) {
            page.is_trusted = message.rights.may(Right::Forward);
        }
    }

    /// Executes a request of a page, once it is permitted.
    pub(crate) fn request(
        &mut self,
        me: PageId,
        request: Request,
        message: &Message,
    ) -> Result<(), Refusal> {
        match request {
            // These need more than the phone of the page.
            Request::Register | Request::Forward => Ok(()),
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
