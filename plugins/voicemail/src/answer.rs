//! The server's answers: they accept Opus, and nothing else.

use portunus_core::sdp::{AnswerOptions, CodecName, Description, Direction, Kind};
use portunus_core::{ExtensionKind, Jsep, Mid};

use crate::file::MessageId;
use crate::request::Refusal;

/// Returns the answer to an offer, and the m-line to record.
pub(crate) fn answer(jsep: &Jsep, id: MessageId) -> Result<(Description, Mid), Refusal> {
    let mut options = AnswerOptions {
        data: false,
        extensions: ExtensionKind::ALL.to_vec(),
        name: Some(format!("VoiceMail {id}")),
        ..AnswerOptions::default()
    };
    options.audio.codecs = vec![CodecName::Opus];
    options.audio.direction = Direction::RecvOnly;
    options.audio.fmtp = jsep.description.opus_flags().fmtp();
    options.video.codecs = Vec::new();
    let mut answer = Description::answer(&jsep.description, &options);
    let heard = answer
        .active(Kind::Audio)
        .find(|media| media.direction.receives())
        .map(|media| media.mid);
    let mid = heard.ok_or(Refusal::NoOpus)?;
    let others = answer.media.iter_mut().filter(|media| media.mid != mid);
    for media in others {
        media.rejected = true;
    }
    Ok((answer, mid))
}
