//! Profiles, options and calls of the simplest kind; how agents react.

use portunus_sip::agent::{AgentEvent, Body, Command, Invite, Limits, Local, Options, Profile};
use portunus_sip::flow::Transport;
use portunus_sip::message::Uri;

use crate::world::address;

pub fn uri(text: &str) -> Uri {
    text.parse().unwrap()
}

pub fn sdp(text: &str) -> Body {
    Body {
        content_type: "application/sdp".into(),
        content: text.as_bytes().to_vec(),
    }
}

pub fn profile(identity: &str) -> Profile {
    Profile {
        identity: uri(identity),
        display_name: String::new(),
        credentials: None,
        registration: None,
        outbound_proxy: None,
        transport: None,
        user_agent: None,
        contact_params: Vec::new(),
        behind_nat: false,
        reliable: false,
        entrance: false,
        trace: false,
    }
}

pub fn invite(to: &str) -> Invite {
    Invite {
        uri: uri(to),
        call_id: None,
        offer: Some(sdp("offer")),
        headers: Vec::new(),
        credentials: None,
        cancel_early: false,
    }
}

pub fn options() -> Options {
    let local = |transport| Local {
        transport,
        host: address(0).ip().into(),
        port: Some(5060),
    };
    Options {
        locals: vec![local(Transport::Udp), local(Transport::Tcp)],
        user_agent: "test".into(),
        // Accounts of tests are called by their names.
        direct: vec![([0; 4].into(), 0)],
        ..Options::default()
    }
}

/// Answers each call at once.
pub fn answering(event: &AgentEvent) -> Vec<Command> {
    match event {
        AgentEvent::Incoming { call, request, .. } => {
            let body = if request.body.is_empty() {
                "offer"
            } else {
                "answer"
            };
            vec![
                Command::Progress {
                    call: *call,
                    code: 180,
                    headers: Vec::new(),
                    body: None,
                },
                Command::Accept {
                    call: *call,
                    headers: Vec::new(),
                    body: Some(sdp(body)),
                },
            ]
        }
        AgentEvent::Reinvite { call, request } => {
            let body = if request.body.is_empty() {
                "offer"
            } else {
                "answer"
            };
            vec![Command::AcceptReinvite {
                call: *call,
                headers: Vec::new(),
                body: Some(sdp(body)),
            }]
        }
        _ => Vec::new(),
    }
}

/// Rings, and waits.
pub fn ringing(event: &AgentEvent) -> Vec<Command> {
    match event {
        AgentEvent::Incoming { call, .. } => {
            vec![Command::Progress {
                call: *call,
                code: 180,
                headers: Vec::new(),
                body: None,
            }]
        }
        _ => Vec::new(),
    }
}

pub fn passive(_: &AgentEvent) -> Vec<Command> {
    Vec::new()
}

/// Limits for tests of bounds.
pub fn limits() -> Limits {
    Limits {
        calls: 50,
        ringing: 20,
        transactions: 400,
        ..Limits::default()
    }
}
