//! What clients may ask for.

use portunus_core::{Asked, Fields, Message, Right, Rights, requests};

use crate::page::PageId;
use crate::phones::Phones;
use crate::refusal::Refusal;

requests! {
    /// What clients may ask for.
    pub enum Request {
        Register = "register": Event, Nothing, Begins;
        Unregister = "unregister": Event, Nothing;
        Call = "call": Event, Nothing, Begins;
        Accept = "accept": Event, Nothing;
        Progress = "progress": Event, Nothing;
        SendRinging = "send_ringing": Event, Nothing;
        Decline = "decline": Event, Nothing;
        Hangup = "hangup": Event, Nothing;
        Update = "update": Event, Nothing;
        Hold = "hold": Event, Nothing;
        Unhold = "unhold": Event, Nothing;
        Info = "info": Event, Nothing;
        DtmfInfo = "dtmf_info": Event, Nothing;
        Message = "message": Event, Nothing;
        Transfer = "transfer": Event, Nothing;
        Subscribe = "subscribe": Event, Nothing;
        Unsubscribe = "unsubscribe": Event, Nothing;
        Publish = "publish": Event, Nothing;
        Unpublish = "unpublish": Event, Nothing;
        Recording = "recording": Event, Depends(begins);
        Keyframe = "keyframe": Event, Nothing;
        Forward = "rtp_forward": Event, Right(Right::Forward);
        StopForward = "stop_rtp_forward": Event, Right(Right::Forward);
        ListForwarders = "listforwarders": Event, Right(Right::Forward);
        Reset = "reset": Event, Nothing;
        Lines = "lines": Event, Nothing;
        Move = "move": Event, Nothing;
    }
}

/// The default of members that hold unless they are `false`.
pub(crate) const fn yes() -> bool {
    true
}

/// To begin a recording, or to go on with one, makes files.
fn begins(fields: Fields<'_>) -> Rights {
    let action: Option<&str> = fields.member("action").ok().flatten();
    let action = action.unwrap_or_default().to_ascii_lowercase();
    Rights::if_so(matches!(action.as_str(), "start" | "resume"), Right::Record)
}

impl Phones {
    /// Follows a request of a page.
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

    /// `reset`: Janus clears flags with it that can be left over; there are none here.
    fn reset(&mut self, me: PageId, message: &Message) -> Result<(), Refusal> {
        self.answer(me, message, "reset");
        Ok(())
    }
}
