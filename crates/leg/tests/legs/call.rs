//! Two telephones in a call.

use std::time::Duration;

use portunus_leg::Leg;
use portunus_rtp::{Header, Pt};

use crate::rig::{PCMU, Phone, Rig, events, until};

/// Two telephones whose legs are routed into each other.
pub struct Call {
    pub rig: Rig,
    pub alice: (Phone, Leg),
    pub bob: (Phone, Leg),
}

pub fn call_of(workers: usize, alice: Phone, bob: Phone) -> Call {
    let rig = Rig::new(workers);
    let (one, other) = (
        rig.leg(|options| options.worker = Some(0)),
        rig.leg(|options| options.worker = Some(workers - 1)),
    );
    one.set_remote(alice.remote(&[PCMU, events(101)]));
    other.set_remote(bob.remote(&[PCMU, events(96)]));
    one.route_from(Some(other.source()));
    other.route_from(Some(one.source()));
    Call {
        rig,
        alice: (alice, one),
        bob: (bob, other),
    }
}

pub fn call() -> Call {
    call_of(1, Phone::new(), Phone::new())
}

/// Sends until something of it comes: routes between workers need a moment.
pub fn begin(from: &mut (Phone, Leg), to: &mut (Phone, Leg)) -> Header {
    let patience = Some(Duration::from_millis(20));
    to.0.rtp.set_read_timeout(patience).unwrap();
    let mut buffer = [0; 2_048];
    let mut first = None;
    until("what is sent comes", || {
        from.0.send(&from.1, Pt(0), b"hello");
        first =
            to.0.rtp
                .recv(&mut buffer)
                .ok()
                .map(|len| to.0.open(&mut buffer[..len]).0);
        first.is_some()
    });
    // What was sent meanwhile.
    let mut last = first.unwrap();
    while let Ok(len) = to.0.rtp.recv(&mut buffer) {
        last = to.0.open(&mut buffer[..len]).0;
    }
    let patience = Some(Duration::from_secs(10));
    to.0.rtp.set_read_timeout(patience).unwrap();
    last
}
