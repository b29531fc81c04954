//! Calls of a trunk in a room: keys, changes of the call, codecs.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use portunus_audio::AudioCodec;
use portunus_call::{LegEvent, LegNews, LegSide, ServerCall};
use portunus_sip::agent::{AgentEvent, CallId, Command};
use portunus_sip::flow::{Flow, Transport};
use portunus_sip::message::{Method, Request};
use portunus_telephony::{Caller, Entrance, EntranceError, Stay};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::trunk::TrunkConfig;
use crate::trunk::talk::{Deed, Talk};
use crate::trunk::visit::{Farewell, Pin};

use super::{OFFER, OpenStay, PinRoom, World, invite};

/// A room that reports its codec.
#[derive(Debug)]
struct ToldRoom(mpsc::UnboundedSender<AudioCodec>);

impl Entrance for ToldRoom {
    fn room(&self) -> String {
        "1".to_owned()
    }

    fn wants_pin(&self) -> bool {
        false
    }

    fn takes_pin(&self, _: &str) -> bool {
        true
    }

    fn enter(&self, caller: Caller) -> Result<Stay, EntranceError> {
        std::mem::forget(caller.tell);
        Ok(Stay::new(OpenStay(Some(self.0.clone()))))
    }
}

impl World {
    /// A call whose far end has offered [`OFFER`], with a sender of its events.
    fn talk(&self) -> (Talk, mpsc::Sender<AgentEvent>) {
        let office = Arc::clone(&self.trunks.office);
        let (mut media, legs) = ServerCall::new(office.call.clone()).unwrap();
        media.answer(OFFER).unwrap();
        let (tell, events) = mpsc::channel(8);
        (
            Talk::new(office, CallId::new(1), (media, legs), events),
            tell,
        )
    }

    /// The target of media, and whether any is expected.
    fn far(&self) -> (SocketAddr, bool) {
        let legs = self.trunks.office.call.media.requested().legs;
        let leg = legs.first().unwrap();
        (leg.remote.as_ref().unwrap().rtp.unwrap(), leg.gates.receive)
    }
}

impl World {
    /// The same, with a sender of the leg's events.
    fn talk_with_leg(&self) -> (Talk, mpsc::Sender<AgentEvent>, mpsc::Sender<LegNews>) {
        let (mut talk, tell) = self.talk();
        let (leg, news) = mpsc::channel(8);
        talk.legs = news;
        (talk, tell, leg)
    }
}

/// A key by RTP.
fn by_sound(talk: &Talk, event: u8) -> LegNews {
    LegNews {
        leg: talk.media.leg().id(),
        event: LegEvent::Key {
            by: LegSide::FarEnd,
            event,
            duration: 800,
            clock_rate: 8_000,
        },
    }
}

/// A key by INFO.
fn by_info(key: char) -> AgentEvent {
    let mut request = Request::clone(&invite("9"));
    request.method = Method::Info;
    request.set_body(
        "application/dtmf-relay",
        format!("Signal={key}\r\nDuration=160\r\n"),
    );
    AgentEvent::Request {
        account: None,
        call: Some(CallId::new(1)),
        flow: Flow {
            transport: Transport::Udp,
            local: "127.0.0.1:5060".parse().unwrap(),
            remote: "192.0.2.7:5060".parse().unwrap(),
            connection: None,
        },
        request: Arc::new(request),
    }
}

async fn next_key(talk: &mut Talk) -> char {
    match timeout(Duration::from_secs(20), talk.next(None)).await {
        Ok(Deed::Key(key)) => key,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_pin_is_entered_by_info() {
    let world = World::new(TrunkConfig::default());
    let (mut talk, tell) = world.talk();
    for key in "99*1234#".chars() {
        tell.send(by_info(key)).await.unwrap();
    }
    let codec = talk.media.codec().unwrap();
    let pin = timeout(Duration::from_secs(20), talk.ask_pin(&PinRoom, codec));
    assert_eq!(pin.await.unwrap(), Ok(Some("1234".to_owned())));
}

#[tokio::test]
async fn a_key_that_is_told_both_ways_counts_once() {
    let mut world = World::new(TrunkConfig::default());
    let (mut talk, tell, leg) = world.talk_with_leg();
    tell.send(by_info('1')).await.unwrap();
    assert_eq!(next_key(&mut talk).await, '1');
    // The key is released, and another one arrives late.
    for event in [1, 2] {
        leg.send(by_sound(&talk, event)).await.unwrap();
    }
    let now = Some(tokio::time::Instant::now());
    assert!(matches!(talk.next(now).await, Deed::Nothing));
    for key in ['2', '2'] {
        tell.send(by_info(key)).await.unwrap();
        assert_eq!(next_key(&mut talk).await, '2');
    }
    // Another telephone, which has its own way.
    tell.send(reinvite(OFFER)).await.unwrap();
    let until = |deed: &Deed| matches!(deed, Deed::Change);
    assert!(until(&talk.next(None).await));
    assert!(matches!(
        world.command().await,
        Command::AcceptReinvite { .. }
    ));
    leg.send(by_sound(&talk, 11)).await.unwrap();
    assert_eq!(next_key(&mut talk).await, '#');
    tell.send(by_info('#')).await.unwrap();
    tell.send(reinvite(OFFER)).await.unwrap();
    assert!(until(&talk.next(None).await));
}

/// The far end changes the call to this, or asks for an offer.
fn reinvite(sdp: &str) -> AgentEvent {
    let mut request = Request::clone(&invite("9"));
    request.set_body("application/sdp", sdp);
    if sdp.is_empty() {
        request.headers.remove("Content-Type");
    }
    AgentEvent::Reinvite {
        call: CallId::new(1),
        request: Arc::new(request),
    }
}

#[tokio::test]
async fn a_far_end_that_asks_for_an_offer_within_the_call_is_where_its_ack_says() {
    let mut world = World::new(TrunkConfig::default());
    let (mut talk, tell) = world.talk();
    assert_eq!(world.far(), ("192.0.2.7:6000".parse().unwrap(), true));
    tell.send(reinvite("")).await.unwrap();
    assert!(matches!(talk.next(None).await, Deed::Change));
    let Command::AcceptReinvite { body, .. } = world.command().await else {
        panic!("an offer");
    };
    let offer = String::from_utf8(body.unwrap().content).unwrap();
    assert!(offer.contains("PCMA") && offer.contains("PCMU"), "{offer}");
    let AgentEvent::Reinvite { request, .. } = reinvite(&OFFER.replace("6000", "7000")) else {
        panic!("an answer");
    };
    let acknowledged = AgentEvent::Acknowledged {
        call: CallId::new(1),
        request,
    };
    tell.send(acknowledged).await.unwrap();
    assert!(matches!(talk.next(None).await, Deed::Change));
    assert_eq!(world.far(), ("192.0.2.7:7000".parse().unwrap(), true));
}

#[tokio::test]
async fn a_far_end_that_holds_the_call_and_sends_nothing_is_not_missed() {
    let mut world = World::new(TrunkConfig::default());
    let (mut talk, tell) = world.talk();
    for (direction, is_expected) in [
        ("inactive", false),
        ("recvonly", false),
        ("sendonly", true),
        ("sendrecv", true),
    ] {
        let held = format!("{OFFER}a={direction}\r\n");
        tell.send(reinvite(&held)).await.unwrap();
        assert!(matches!(talk.next(None).await, Deed::Change));
        let accepted = world.command().await;
        assert!(matches!(accepted, Command::AcceptReinvite { .. }));
        assert_eq!(world.far().1, is_expected, "{direction}");
    }
}

#[tokio::test]
async fn a_room_hears_of_another_codec() {
    let mut world = World::new(TrunkConfig::default());
    let (mut talk, tell) = world.talk();
    let (told, mut codecs) = mpsc::unbounded_channel();
    let codec = talk.media.codec().unwrap();
    let pin = Pin::Shown(None);
    let visit = talk.enter(&ToldRoom(told), None, codec, pin).unwrap();
    let stay = tokio::spawn(async move { talk.stay(visit).await });
    // The codec stays, although there is a better one.
    let better = OFFER.replace("AVP 8 101", "AVP 9 8 101");
    tell.send(reinvite(&better)).await.unwrap();
    let Command::AcceptReinvite { body, .. } = world.command().await else {
        panic!("an answer");
    };
    let answer = String::from_utf8(body.unwrap().content).unwrap();
    assert!(answer.contains("AVP 8 101"), "{answer}");
    // An offer without a common codec is refused.
    let none = OFFER.replace("AVP 8 101", "AVP 18 101");
    tell.send(reinvite(&none)).await.unwrap();
    assert!(matches!(
        world.command().await,
        Command::RejectReinvite { code: 488, .. }
    ));
    let other = OFFER.replace("AVP 8 101", "AVP 0 101");
    tell.send(reinvite(&other)).await.unwrap();
    assert!(matches!(
        world.command().await,
        Command::AcceptReinvite { .. }
    ));
    assert_eq!(codecs.recv().await, Some(AudioCodec::Pcmu));
    drop(tell);
    assert!(matches!(
        stay.await.unwrap(),
        Farewell::Ended { code: 500, .. }
    ));
    assert_eq!(codecs.recv().await, None);
}
