//! Trunks with a SIP stack that the tests play.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by a panic"
)]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use portunus_audio::{AudioCodec, AudioConfig, AudioThreads};
use portunus_core::media::MediaPlane;
use portunus_core::record::Recorder;
use portunus_sip::agent::{AccountId, AgentEvent, CallId, Cause, Command};
use portunus_sip::dialog::DialogId;
use portunus_sip::digest::{Client, Credentials};
use portunus_sip::flow::{Flow, Transport};
use portunus_sip::message::{Message, Request, Response};
use portunus_telephony::{
    AudioRooms, Caller, DialError, DialNews, Dialled, Entrance, EntranceError, Stay, Staying,
    Telephony,
};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::{TrunkConfig, TrunkMeans, Trunks};
use crate::config::SipConfig;
use crate::media::MediaContext;

mod conversations;
mod registered;

const OFFER: &str = "v=0\r\no=- 1 1 IN IP4 192.0.2.7\r\ns=-\r\nc=IN IP4 192.0.2.7\r\nt=0 0\r\n\
                     m=audio 6000 RTP/AVP 8 101\r\na=rtpmap:101 telephone-event/8000\r\n";

struct World {
    trunks: Trunks,
    commands: mpsc::UnboundedReceiver<Command>,
    calls: u64,
}

/// There is room 9, with a pin.
#[derive(Debug)]
struct Rooms;

impl AudioRooms for Rooms {
    fn entrance(&self, room: &str) -> Option<Arc<dyn Entrance>> {
        (room == "9").then(|| Arc::new(PinRoom) as _)
    }
}

#[derive(Debug)]
struct PinRoom;

impl Entrance for PinRoom {
    fn room(&self) -> String {
        "9".to_owned()
    }

    fn wants_pin(&self) -> bool {
        true
    }

    fn takes_pin(&self, pin: &str) -> bool {
        pin == "1234"
    }

    fn enter(&self, _: Caller) -> Result<Stay, EntranceError> {
        Ok(Stay::new(OpenStay(None)))
    }
}

/// A room that lets everybody in.
#[derive(Debug)]
struct OpenRoom;

/// The channel, if there is one, gets the codec.
#[derive(Debug)]
struct OpenStay(Option<mpsc::UnboundedSender<AudioCodec>>);

impl Staying for OpenStay {
    fn id(&self) -> String {
        "77".to_owned()
    }

    fn toggle_mute(&self) -> Option<bool> {
        Some(true)
    }

    fn set_codec(&self, codec: AudioCodec) {
        let _ = self.0.as_ref().unwrap().send(codec);
    }
}

impl Entrance for OpenRoom {
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
        assert!(caller.is_invited);
        // The room keeps the way to its caller.
        std::mem::forget(caller.tell);
        Ok(Stay::new(OpenStay(None)))
    }
}

impl World {
    /// A trunk that calls from 192.0.2.0/24.
    fn new(trunk: TrunkConfig) -> Self {
        Self::with(vec![trunk])
    }

    fn with(trunks: Vec<TrunkConfig>) -> Self {
        let trunks = trunks.into_iter().enumerate();
        let trunks = trunks.map(|(number, trunk)| TrunkConfig {
            name: format!("office {number}"),
            from: vec!["192.0.2.0/24".parse().unwrap()],
            ..trunk
        });
        let config = SipConfig {
            trunks: trunks.collect(),
            ..SipConfig::default()
        };
        let (media, ..) = MediaPlane::detached();
        let audio = AudioThreads::new(AudioConfig::default(), media.clone(), Recorder::default());
        let (context, _) = MediaContext::new(&config, (media, None), None);
        let (told, commands) = mpsc::unbounded_channel();
        let telephony = Telephony::default();
        telephony.offer_audio_rooms(Arc::new(Rooms));
        let means = TrunkMeans {
            call: context.settings(),
            audio,
            telephony,
        };
        let trunks = Trunks::new(
            &config,
            means,
            Arc::new(move |command| {
                let _ = told.send(command);
            }),
        );
        World {
            trunks: trunks.unwrap(),
            commands,
            calls: 0,
        }
    }

    async fn command(&mut self) -> Command {
        let command = timeout(Duration::from_secs(20), self.commands.recv()).await;
        command.unwrap().unwrap()
    }

    /// Handles a call. Returns the event if no trunk takes it.
    fn call(&mut self, from: &str, request: &Arc<Request>) -> Option<AgentEvent> {
        self.call_account((None, &[]), from, request)
    }

    /// Somebody calls an account; from where these trunks are registered.
    fn call_account(
        &mut self,
        (account, entrances): (Option<AccountId>, &[AccountId]),
        from: &str,
        request: &Arc<Request>,
    ) -> Option<AgentEvent> {
        self.calls += 1;
        self.trunks.take(AgentEvent::Incoming {
            call: CallId::new(self.calls),
            account,
            entrances: entrances.to_vec(),
            flow: Flow {
                transport: Transport::Udp,
                local: "127.0.0.1:5060".parse().unwrap(),
                remote: SocketAddr::new(from.parse().unwrap(), 5060),
                connection: None,
            },
            dialog: DialogId {
                call_id: "c".to_owned(),
                local_tag: "l".to_owned(),
                remote_tag: "r".to_owned(),
            },
            replaces: None,
            request: request.clone(),
        })
    }

    /// The status that the next call is refused with, and the headers of that.
    async fn refused(&mut self) -> (u16, Vec<(String, String)>) {
        match self.command().await {
            Command::Reject { code, headers, .. } => (code, headers),
            other => panic!("{other:?}"),
        }
    }
}

fn invite(to: &str) -> Arc<Request> {
    let text = format!(
        "INVITE sip:{to}@127.0.0.1 SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.7;branch=z9hG4bK1\r\n\
         From: \"Ann\" <sip:+4930@192.0.2.7>;tag=r\r\nTo: <sip:{to}@127.0.0.1>\r\nCall-ID: c\r\nCSeq: 1 INVITE\r\n\
         Contact: <sip:192.0.2.7>\r\nMax-Forwards: 70\r\nContent-Type: application/sdp\r\nContent-Length: {}\r\n\r\n{OFFER}",
        OFFER.len()
    );
    match Message::parse(text.as_bytes()).unwrap() {
        Message::Request(request) => Arc::new(request),
        Message::Response(_) => panic!("a request"),
    }
}

fn response(status: &str, headers: &str, body: &str) -> Response {
    let text = format!(
        "SIP/2.0 {status}\r\nVia: SIP/2.0/UDP 127.0.0.1;branch=z9hG4bK2\r\nFrom: <sip:a@h>;tag=l\r\nTo: <sip:b@h>;tag=r\r\n\
         Call-ID: c\r\nCSeq: 1 INVITE\r\nContact: <sip:192.0.2.7>\r\n{headers}Content-Type: application/sdp\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    match Message::parse(text.as_bytes()).unwrap() {
        Message::Response(response) => response,
        Message::Request(_) => panic!("a response"),
    }
}

#[tokio::test]
async fn calls_of_strangers_are_not_a_trunks() {
    let mut world = World::new(TrunkConfig::default());
    assert!(world.call("198.51.100.1", &invite("1")).is_some());
    assert!(world.call("192.0.2.1", &invite("1")).is_none());
    // There is no plugin with rooms.
    assert_eq!(world.refused().await.0, 404);
}

#[tokio::test]
async fn numbers_that_are_not_the_trunks_are_refused() {
    let mut world = World::new(TrunkConfig {
        prefix: "+4930".to_owned(),
        ..TrunkConfig::default()
    });
    assert!(world.call("192.0.2.1", &invite("+1202")).is_none());
    assert_eq!(world.refused().await.0, 404);
}

/// Numbers of gateways, ported numbers, and numbers with separators.
#[tokio::test]
async fn a_room_is_called_whatever_else_the_user_part_says() {
    for called in [
        "779;tgrp=g1;trunk-context=example.com",
        "779;npdi;rn=+49199",
        "779;phone-context=+4930",
        "7-7.9",
    ] {
        let mut world = World::new(TrunkConfig {
            prefix: "77".to_owned(),
            ..TrunkConfig::default()
        });
        assert!(world.call("192.0.2.1", &invite(called)).is_none());
        let taken = world.command().await;
        assert!(
            matches!(taken, Command::Accept { .. }),
            "{called}: {taken:?}"
        );
    }
}

#[tokio::test]
async fn trunks_at_one_address_are_told_apart_by_their_numbers() {
    let with = |prefix: &str, caller: &str| TrunkConfig {
        prefix: prefix.to_owned(),
        caller_user: caller.to_owned(),
        caller_password: caller.to_owned(),
        ..TrunkConfig::default()
    };
    let mut world = World::with(vec![with("+4930", ""), with("+4940", "second")]);
    for (called, code) in [("+49301", 404), ("+49401", 401), ("+1202", 404)] {
        assert!(world.call("192.0.2.1", &invite(called)).is_none());
        assert_eq!(world.refused().await.0, code, "{called}");
    }
}

#[tokio::test]
async fn callers_show_the_password_of_the_trunk() {
    let mut world = World::new(TrunkConfig {
        caller_user: "office".to_owned(),
        caller_password: "right".to_owned(),
        ..TrunkConfig::default()
    });
    assert!(world.call("192.0.2.1", &invite("1")).is_none());
    let (code, headers) = world.refused().await;
    assert_eq!(code, 401);
    let header = |(name, value): &(String, String)| format!("{name}: {value}\r\n");
    let challenge: String = headers.iter().map(header).collect();
    assert!(challenge.contains("SHA-256") && challenge.contains("MD5"));
    let challenge = response("401 Unauthorized", &challenge, "");
    // With the right password it gets as far as the room, which is not there.
    for (password, expected) in [("wrong", 403), ("right", 404)] {
        let credentials = Credentials::password("office", password);
        let mut client = Client::new();
        client.challenged(&challenge, &credentials).unwrap();
        let mut request = Request::clone(&invite("1"));
        client.authorize(&mut request, &credentials, "0a4f113b");
        assert!(world.call("192.0.2.1", &Arc::new(request)).is_none());
        assert_eq!(world.refused().await.0, expected, "{password}");
    }
}

#[tokio::test]
async fn a_room_whose_pin_was_wrong_too_often_takes_no_calls_for_a_while() {
    let mut world = World::new(TrunkConfig::default());
    for _ in 0..10 {
        world.trunks.office.pins.note("9", Instant::now());
    }
    assert!(world.call("192.0.2.1", &invite("9")).is_none());
    let (code, headers) = world.refused().await;
    let (name, seconds) = headers.first().unwrap();
    assert_eq!((code, name.as_str()), (480, "Retry-After"));
    assert!((1..=61).contains(&seconds.parse::<u32>().unwrap()));
}

#[tokio::test]
async fn a_server_that_is_drained_takes_no_calls_of_trunks() {
    let mut world = World::new(TrunkConfig::default());
    world.trunks.draining = true;
    assert!(world.call("192.0.2.1", &invite("1")).is_none());
    let (code, headers) = world.refused().await;
    let later = ("Retry-After".to_owned(), "5".to_owned());
    assert_eq!((code, headers), (503, vec![later]));
}

fn dialled(to: &str, trunk: Option<&str>) -> (Dialled, mpsc::Receiver<DialNews>) {
    let (tell, news) = mpsc::channel(8);
    let dialled = Dialled {
        to: to.to_owned(),
        trunk: trunk.map(str::to_owned),
        display: None,
        room: Arc::new(OpenRoom),
        tell,
    };
    (dialled, news)
}

#[tokio::test]
async fn a_room_calls_a_telephone() {
    let mut world = World::new(TrunkConfig {
        server: "sip:192.0.2.9".to_owned(),
        identity: "sip:+4930@provider.example".to_owned(),
        numbers: vec!["+49".to_owned()],
        max_calls: 1,
        ..TrunkConfig::default()
    });
    let Command::SetAccount { profile, .. } = world.command().await else {
        panic!("an account");
    };
    assert!(profile.registration.is_none());
    // It does not call for the telephone.
    assert!(!profile.refers);
    let mut refused = |to, trunk| world.trunks.dial(dialled(to, trunk).0).unwrap_err();
    assert_eq!(refused("+1", None), DialError::Forbidden("+1".to_owned()));
    assert_eq!(refused("a@b", None), DialError::Address("a@b".to_owned()));
    let other = DialError::NoTrunk("other".to_owned());
    assert_eq!(refused("+491", Some("other")), other);

    let (call, mut news) = dialled("+49 1", None);
    let id = world.trunks.dial(call).unwrap();
    let busy = world.trunks.dial(dialled("+492", None).0).unwrap_err();
    assert_eq!(busy, DialError::Busy);
    let Command::Invite { call, invite, .. } = world.command().await else {
        panic!("a call");
    };
    assert_eq!(
        (call.get(), invite.uri.to_string()),
        (id.0, "sip:+491@192.0.2.9".to_owned())
    );
    let offer = String::from_utf8(invite.offer.unwrap().content).unwrap();
    for codec in [
        "opus/48000",
        "G722/8000",
        "PCMA/8000",
        "telephone-event/8000",
    ] {
        assert!(offer.contains(codec), "{codec}: {offer}");
    }
    let dialog = DialogId {
        call_id: "c".to_owned(),
        local_tag: "l".to_owned(),
        remote_tag: "r".to_owned(),
    };
    let ringing = AgentEvent::Provisional {
        call,
        dialog: dialog.clone(),
        response: Arc::new(response("180 Ringing", "", "")),
    };
    assert!(world.trunks.take(ringing).is_none());
    assert_eq!(news.recv().await, Some(DialNews::Ringing));
    let answered = AgentEvent::Accepted {
        call,
        dialog,
        response: Arc::new(response("200 OK", "", OFFER)),
    };
    assert!(world.trunks.take(answered).is_none());
    assert_eq!(news.recv().await, Some(DialNews::Answered("77".to_owned())));
    let ended = AgentEvent::Ended {
        call,
        cause: Cause::Bye,
        code: 200,
        reason: "Session Terminated".to_owned(),
        message: None,
    };
    assert!(world.trunks.take(ended).is_none());
    let end = DialNews::Ended {
        code: 200,
        reason: "Session Terminated".to_owned(),
    };
    assert_eq!(news.recv().await, Some(end));
    // The line is free again.
    let (call, mut news) = dialled("+493", None);
    let mut call = Some(call);
    let again = loop {
        match world.trunks.dial(call.take().unwrap()) {
            Ok(id) => break id,
            Err(DialError::Busy) => {
                tokio::task::yield_now().await;
                let (next, more) = dialled("+493", None);
                (call, news) = (Some(next), more);
            }
            Err(other) => panic!("{other}"),
        }
    };
    assert_ne!(again, id);
    assert!(news.try_recv().is_err());
}
