//! What the descriptions of both sides of a call say, and how they are passed on.

use portunus_core::sdp::{CodecName, Description, Extmap, Kind};
use portunus_core::{ExtensionKind, Jsep, JsepKind, Message};

use crate::request::Refusal;
use crate::users::{Call, User};

impl Call {
    pub(crate) fn note_layers(&mut self, offer: &Jsep) {
        self.simulcast = offer.simulcast.first().map(|simulcast| simulcast.mid);
        let media = offer.description.media.iter();
        self.layer_extensions = media
            .map(|media| {
                let naming = |extmap: &&Extmap| extmap.kind().is_some_and(names_layer);
                (
                    media.mid,
                    media.extensions.iter().filter(naming).cloned().collect(),
                )
            })
            .collect();
    }

    /// Notes what an answer agrees on, which is this user's own or the other side's.
    pub(crate) fn note_answer(&mut self, answer: &Description, is_own: bool) {
        self.note_codecs(answer);
        self.note_sent(answer, is_own);
        self.note_places(answer);
    }

    fn note_codecs(&mut self, answer: &Description) {
        let codec = |kind| {
            let codecs = answer.active(kind).flat_map(|media| &media.codecs);
            codecs
                .filter_map(|codec| codec.codec_name())
                .map(CodecName::name)
                .next()
        };
        self.audio_codec = codec(Kind::Audio);
        self.video_codec = codec(Kind::Video);
        let mut audio = answer.active(Kind::Audio).flat_map(|media| &media.codecs);
        self.audio_red = audio.any(|codec| codec.is_red());
    }
}

/// Returns the offer of a request.
pub(crate) fn offer_of(message: &Message) -> Result<&Jsep, Refusal> {
    let jsep = message.jsep.as_ref().ok_or(Refusal::MissingSdp)?;
    match jsep.kind {
        JsepKind::Offer => Ok(jsep),
        JsepKind::Answer => Err(Refusal::WrongType("offer")),
    }
}

/// Makes the callee's offer: one stream for each m-line, whatever layers the caller sends.
pub(crate) fn without_rids(offer: &Description) -> Description {
    let mut offer = offer.clone();
    for media in &mut offer.media {
        media
            .extensions
            .retain(|extmap| !extmap.kind().is_some_and(names_layer));
    }
    offer
}

/// Makes the offerer's answer, with the layers that the other side did not see.
pub(crate) fn with_rids(answer: &Description, offerer: &User) -> Description {
    let mut answer = answer.clone();
    for (mid, extensions) in &offerer.call.layer_extensions {
        let media = answer
            .media
            .iter_mut()
            .find(|media| media.mid == *mid && !media.rejected);
        if let Some(media) = media {
            media.extensions.extend(extensions.iter().cloned());
        }
    }
    answer
}

fn names_layer(kind: ExtensionKind) -> bool {
    matches!(kind, ExtensionKind::Rid | ExtensionKind::RepairedRid)
}
