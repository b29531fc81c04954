//! `rtp_forward`, `stop_rtp_forward` and `listforwarders`.

use portunus_call::{ForwardError, ForwardRequest, ResolvedForward};
use portunus_core::{FieldError, Fields, Message};

use super::Phone;
use crate::events::named_event;
use crate::refusal::{NOT_IN_A_CALL, Refusal};
use crate::status::PageId;

impl Phone {
    /// Reads `rtp_forward`, whose hosts are resolved without the lock of this phone.
    pub(crate) fn read_forward(
        &self,
        me: PageId,
        message: &Message,
    ) -> Result<ForwardRequest, Refusal> {
        self.check_in_call(me)?;
        Ok(ForwardRequest::read(Fields(&message.body))?)
    }

    /// Forwards a call to resolved hosts, and answers the request.
    pub(crate) fn forward(
        &mut self,
        me: PageId,
        resolved: Result<ResolvedForward, ForwardError>,
        transaction: &str,
    ) {
        let resolved = resolved.map_err(Refusal::from);
        let outcome = resolved.and_then(|request| self.forward_to(me, request, transaction));
        if let (Err(refusal), Some(page)) = (outcome, self.page(me)) {
            let data = refusal.to_json(page.call_id());
            page.handle.push(Some(transaction), data, None);
        }
    }

    fn forward_to(
        &mut self,
        me: PageId,
        request: ResolvedForward,
        transaction: &str,
    ) -> Result<(), Refusal> {
        // The call may have ended meanwhile.
        self.check_in_call(me)?;
        let page = self.page_mut(me).ok_or(NOT_IN_A_CALL)?;
        let side = page.call.as_mut().ok_or(NOT_IN_A_CALL)?;
        let media = side.media.as_mut().ok_or(NOT_IN_A_CALL)?;
        let forwarders = media.forward(request)?;
        let event = named_event("rtp_forward").with("forwarders", forwarders);
        page.reply(transaction, event.clone());
        self.notify_of(me, || event);
        Ok(())
    }

    /// `stop_rtp_forward`.
    pub(super) fn stop_forwarding(&mut self, me: PageId, message: &Message) -> Result<(), Refusal> {
        let id = Fields(&message.body).required("stream_id")?;
        let side = self.side_of_mut(me);
        let media = side.and_then(|side| side.media.as_mut());
        if !media.is_some_and(|media| media.stop_forwarding(id)) {
            return Err(Refusal::NoSuchStream(id));
        }
        let event = named_event("stop_rtp_forward").with("stream_id", id);
        if let Some(page) = self.page(me) {
            page.reply(&message.transaction, event.clone());
            self.notify(page, || event);
        }
        Ok(())
    }

    /// `listforwarders`.
    pub(super) fn forwarders(&mut self, me: PageId, message: &Message) -> Result<(), Refusal> {
        if let Some(page) = self.page(me) {
            let media = page.call.as_ref().and_then(|side| side.media.as_ref());
            let forwarders = media.map(|media| media.forwarders()).unwrap_or_default();
            let event = named_event("forwarders").with("rtp_forwarders", forwarders);
            page.reply(&message.transaction, event);
        }
        Ok(())
    }
}

impl From<ForwardError> for Refusal {
    fn from(error: ForwardError) -> Self {
        match error {
            ForwardError::Field(error) => error.into(),
            ForwardError::Type => Refusal::Value("type"),
            ForwardError::Network(address) => Refusal::Destination(address),
            ForwardError::Value("streams", _) => FieldError::Missing("streams".to_owned()).into(),
            error => Refusal::Forward(error.to_string()),
        }
    }
}
