//! The torture messages of RFC 4475 at an agent.

use portunus_sip::agent::{Agent, Output};
use portunus_sip::flow::{Flow, Transport};
use portunus_sip::message::Message;

use crate::world::*;

/// The statuses that a new agent answers a message with; it takes calls of strangers.
fn answers(name: &str) -> Vec<u16> {
    let bytes = std::fs::read(format!(
        "{}/tests/rfc4475/{name}.dat",
        env!("CARGO_MANIFEST_DIR")
    ))
    .unwrap();
    let now = std::time::Instant::now();
    let mut with = options();
    with.strangers = true;
    let mut agent = Agent::with_seed(with, now, [1; 32]);
    let flow = Flow {
        transport: Transport::Udp,
        local: address(0),
        remote: address(1),
        connection: None,
    };
    agent.receive(now, &flow, &bytes);
    std::iter::from_fn(|| agent.poll())
        .filter_map(|output| match output {
            Output::Transmit { bytes, .. } => Some(bytes),
            _ => None,
        })
        .map(|bytes| match Message::parse(&bytes) {
            Ok(Message::Response(response)) => response.status.code(),
            // What is wrong with the request is wrong with its answer, too.
            _ => String::from_utf8_lossy(&bytes)
                .split(' ')
                .nth(1)
                .unwrap()
                .parse()
                .unwrap(),
        })
        .collect()
}

/// What RFC 4475 asks for, or lets us choose. REGISTER is refused by a user agent, whatever is in
/// it.
const EXPECTED: [(&str, &[u16]); 49] = [
    // Valid, if odd.
    ("wsinv", &[481]),
    ("intmeth", &[405]),
    ("esc01", &[100]),
    ("escnull", &[405]),
    ("esc02", &[405]),
    ("lwsdisp", &[200]),
    ("longreq", &[100]),
    ("dblreq", &[405]),
    ("semiuri", &[200]),
    ("transports", &[200]),
    ("mpart01", &[404]),
    ("unreason", &[]),
    ("noreason", &[]),
    // Invalid. Answers are never answered.
    ("badinv01", &[400]),
    ("clerr", &[400]),
    ("ncl", &[400]),
    ("scalar02", &[400]),
    ("scalarlg", &[]),
    ("quotbal", &[400]),
    ("ltgtruri", &[400]),
    ("lwsruri", &[400]),
    ("lwsstart", &[400]),
    ("trws", &[400]),
    ("escruri", &[400]),
    ("baddate", &[100]),
    ("regbadct", &[400]),
    ("badaspec", &[200]),
    ("baddn", &[400]),
    ("badvers", &[505]),
    ("mismatch01", &[400]),
    ("mismatch02", &[400]),
    ("bigcode", &[]),
    // For transactions.
    ("badbranch", &[200]),
    // For user agents.
    ("insuf", &[400]),
    ("unkscm", &[416]),
    ("novelsc", &[416]),
    ("unksm2", &[405]),
    ("bext01", &[420]),
    ("invut", &[415]),
    ("regaut01", &[405]),
    ("multi01", &[400]),
    ("mcl01", &[400]),
    ("bcast", &[]),
    ("zeromf", &[200]),
    ("cparam01", &[405]),
    ("cparam02", &[405]),
    ("regescrt", &[405]),
    ("sdp01", &[406]),
    ("inv2543", &[100]),
];

#[test]
fn each_is_answered_as_the_rfc_asks() {
    for (name, expected) in EXPECTED {
        assert_eq!(answers(name), expected, "{name}");
    }
}
