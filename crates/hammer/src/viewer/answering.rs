//! The negotiation of a participant whose server offers again and again.

use portunus_rtp::{ExtensionKind, Pt};
use portunus_sdp::{
    AnswerOptions, CodecName, CodecSpec, Description, Direction, IceCredentials, Kind, Negotiated,
    RemoteTransport, SdpError, SdpType, Session, Setup,
};
use smallvec::SmallVec;

use super::preparation::credentials;

/// A participant's side of the negotiation.
#[derive(Debug)]
pub struct Answering {
    session: Session,
    /// The candidates of this side, which stay.
    candidates: Vec<String>,
    transport_feedback: bool,
    /// The codec of video that is answered where it is offered, in place of the first.
    pub(super) preferred: Option<CodecName>,
}

/// The result of a further offer.
#[derive(Debug)]
pub struct Agreed {
    /// How packets are read from now on.
    pub(super) receives: Receives,
    /// New ICE credentials, if the offer restarts ICE.
    pub(super) restart: Option<Box<IceRestart>>,
}

/// The ICE credentials after a restart.
#[derive(Debug)]
pub(super) struct IceRestart {
    pub(super) local: IceCredentials,
    pub(super) remote: RemoteTransport,
}

/// How a participant reads received packets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Receives {
    /// The header extension that numbers packets, if feedback was negotiated.
    pub(super) numbered_by: Option<u8>,
    /// The payload types of retransmissions.
    pub(super) repairs: SmallVec<[Pt; 2]>,
}

impl Answering {
    pub(super) fn new(session: Session, candidates: Vec<String>, transport_feedback: bool) -> Self {
        Self {
            session,
            candidates,
            transport_feedback,
            preferred: None,
        }
    }

    /// Answers a further offer, and accepts all of it. Returns the answer's text, and what the
    /// participant has to know.
    pub fn answer(&mut self, offer: &str) -> Result<(String, Agreed), SdpError> {
        let (text, negotiated, local) = self.exchange(offer)?;
        let receives = Receives::of(&negotiated);
        let remote = negotiated.transport;
        let restart = local.map(|local| Box::new(IceRestart { local, remote }));
        Ok((text, Agreed { receives, restart }))
    }

    pub(super) fn negotiate(&mut self, offer: &str) -> Result<(String, Negotiated), SdpError> {
        let (text, negotiated, _) = self.exchange(offer)?;
        Ok((text, negotiated))
    }

    /// Answers an offer. Returns this side's new ICE credentials, too, if it restarts ICE.
    fn exchange(
        &mut self,
        offer: &str,
    ) -> Result<(String, Negotiated, Option<IceCredentials>), SdpError> {
        let mut offer = self.session.parse(offer, SdpType::Offer)?;
        // Like browsers: the answering side starts the handshake (RFC 8842 section 5.3).
        if offer.transport.setup != Some(Setup::Active) {
            offer.transport.setup = Some(Setup::Passive);
        }
        let mut options = AnswerOptions::default();
        if self.transport_feedback {
            options.extensions.push(ExtensionKind::TransportCc);
        }
        options.audio.direction = Direction::RecvOnly;
        options.video.direction = Direction::RecvOnly;
        // Some servers offer several codecs, most of them the published one first.
        let lines = offer.description.active(Kind::Video);
        let codecs = lines.flat_map(|line| &line.codecs);
        let codecs = codecs.filter_map(CodecSpec::codec_name);
        options.video.codecs = self.preferred.into_iter().chain(codecs).collect();
        let answer = Description::answer(&offer.description, &options);
        let restarts = self.session.set_remote_offer(offer)?;
        let local = restarts.then(credentials);
        if let Some(ice) = local.clone() {
            self.session.set_local_ice(ice, self.candidates.clone());
        }
        let (text, negotiated) = self.session.local_answer(answer)?;
        Ok((text, negotiated, local))
    }
}

impl Receives {
    pub(super) fn of(negotiated: &Negotiated) -> Self {
        let mut received = negotiated.media.iter().filter(|line| line.recv);
        let payloads = received.clone().flat_map(|line| &line.payloads);
        let mut repairs: SmallVec<[Pt; 2]> = payloads.filter_map(|payload| payload.rtx).collect();
        repairs.sort_unstable();
        repairs.dedup();
        let numbered_by = received.find_map(|line| {
            let agreed = line.payloads.first()?.feedback.transport_cc;
            line.extensions
                .id(ExtensionKind::TransportCc)
                .filter(|_| agreed)
        });
        Self {
            numbered_by,
            repairs,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use std::net::IpAddr;

    use crate::source::VideoCodec;
    use crate::viewer::Factory;

    #[test]
    fn further_offers_are_answered_with_their_first_codec() {
        let factory = Factory::new(IpAddr::from([127, 0, 0, 1]), &[], false).unwrap();
        let offer = |audio, codec| {
            let direction = portunus_sdp::Direction::SendOnly;
            factory
                .offer(None, direction, audio, codec, false)
                .unwrap()
                .1
        };
        let first = offer(true, None);
        let mut answered = factory.answer_first(&first, None).unwrap();
        assert!(answered.text.contains("opus") && !answered.text.contains("m=video"));
        // The same PeerConnection, with a further m-line of two codecs.
        let both = offer(true, Some(VideoCodec::H264));
        let video = both.split_once("m=video").unwrap().1;
        let pt = video.split(' ').nth(3).unwrap();
        let vp8 = "a=rtpmap:77 VP8/90000\r\n";
        let more = video.replacen(&format!(" {pt} "), &format!(" {pt} 77 "), 1) + vp8;
        let second = format!("{first}m=video{more}").replace("BUNDLE 0", "BUNDLE 0 1");
        let (text, agreed) = answered.answering.answer(&second).unwrap();
        assert!(
            text.contains("H264/90000") && !text.contains("VP8"),
            "{text}"
        );
        assert!(!agreed.receives.repairs.is_empty());
        assert!(agreed.restart.is_none());
    }

    #[test]
    fn the_preferred_codec_is_answered_wherever_it_is_offered() {
        let offers = [VideoCodec::Vp8, VideoCodec::H264].map(|codec| {
            let factory = Factory::new(IpAddr::from([127, 0, 0, 1]), &[], false).unwrap();
            let direction = portunus_sdp::Direction::SendOnly;
            factory
                .offer(None, direction, false, Some(codec), false)
                .unwrap()
                .1
        });
        let [vp8, h264] = offers;
        let pt = vp8
            .split_once("m=video")
            .unwrap()
            .1
            .split(' ')
            .nth(3)
            .unwrap();
        let both = vp8.replacen(&format!(" {pt} "), &format!(" {pt} 77 "), 1)
            + "a=rtpmap:77 H264/90000\r\na=fmtp:77 profile-level-id=42e01f;packetization-mode=1\r\n";
        let answer = |offer: &str| {
            let factory = Factory::new(IpAddr::from([127, 0, 0, 1]), &[], false).unwrap();
            let factory = factory.preferring(VideoCodec::H264);
            factory.answer(offer, None).unwrap().1
        };
        assert!(answer(&both).contains("H264/90000"), "{both}");
        assert!(answer(&h264).contains("H264/90000"));
        assert!(answer(&vp8).contains("VP8/90000"));
    }

    #[test]
    fn an_offer_that_restarts_ice_is_answered_with_new_credentials() {
        let factory = Factory::new(IpAddr::from([127, 0, 0, 1]), &[], false).unwrap();
        let direction = portunus_sdp::Direction::SendOnly;
        let (_, offer) = factory.offer(None, direction, true, None, false).unwrap();
        let mut answered = factory.answer_first(&offer, None).unwrap();
        let lines = offer
            .lines()
            .map(|line| match line.split_once("ice-ufrag:") {
                Some((start, _)) => format!("{start}ice-ufrag:other\r\n"),
                None => format!("{line}\r\n"),
            });
        let (text, agreed) = answered
            .answering
            .answer(&lines.collect::<String>())
            .unwrap();
        let restart = agreed.restart.unwrap();
        assert_eq!(restart.remote.ice.ufrag, "other");
        let ufrag = format!("ice-ufrag:{}", restart.local.ufrag);
        assert!(text.contains(&ufrag) && !answered.text.contains(&ufrag));
    }
}
