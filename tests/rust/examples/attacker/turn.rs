//! TURN requests of strangers, and allocations with valid credentials.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use serde_json::json;
use turn_types::message::{ALLOCATE, REFRESH};
use turn_types::stun::attribute::{ErrorCode, Nonce};
use turn_types::stun::message::{
    BINDING, IntegrityAlgorithm, IntegrityKey, LongTermKeyCredentials, Message,
};

use crate::flood::Flood;
use crate::http::Http;
use crate::stun::request;
use crate::{Options, Tally, address};

const USERNAME: u16 = 0x0006;
const LIFETIME: u16 = 0x000D;
const REALM: u16 = 0x0014;
const NONCE: u16 = 0x0015;
const REQUESTED_TRANSPORT: u16 = 0x0019;
const UDP: (u16, &[u8]) = (REQUESTED_TRANSPORT, &[17, 0, 0, 0]);
const OWN_REALM: &str = "portunus";

/// Half of the flood has no credentials or wrong ones. Meanwhile, allocations are made with valid
/// ones, which end with the attack.
pub async fn flood(options: &Options) -> Tally {
    let mut http = Http::connect(address(0), options.http).await.unwrap();
    let session = http.session().await.unwrap().expect("a session");
    let ask = json!({ "janus": "ice_servers", "transaction": "t" });
    let reply = http.post(&session, &ask).await.unwrap();
    let server = &reply["data"]["ice_servers"][0];
    let text = |name: &str| server[name].as_str().expect(name).to_owned();
    let (name, password) = (text("username"), text("credential"));

    let (to, rate, time) = (options.turn, options.rate, options.time());
    let strangers = std::thread::spawn(move || {
        let wrong = key(&name, "wrong");
        let attributes = [
            UDP,
            (USERNAME, name.as_bytes()),
            (REALM, OWN_REALM.as_bytes()),
            (NONCE, b"00000000000000000000"),
        ];
        let requests = [
            request(ALLOCATE, &[UDP], None),
            request(ALLOCATE, &attributes, Some(&wrong)),
            request(BINDING, &[], None),
            request(REFRESH, &attributes, Some(&wrong)),
            vec![0x40, 0, 0, 4, 1, 2, 3, 4],
        ];
        Flood::new().run(to, &requests, rate, time)
    });
    let name = text("username");
    let made = tokio::task::spawn_blocking(move || allocate(to, &name, &password, time));
    let (held, refused) = made.await.unwrap();
    let tally = strangers.join().unwrap();
    Tally {
        held,
        refused,
        ..tally
    }
}

fn key(name: &str, password: &str) -> IntegrityKey {
    let login = LongTermKeyCredentials::new(name.into(), password.into(), OWN_REALM.into());
    login.make_key(IntegrityAlgorithm::Sha1)
}

/// Makes allocations until the time is over, and ends them. Returns the granted and the refused
/// ones.
fn allocate(to: SocketAddr, name: &str, password: &str, time: Duration) -> (u64, u64) {
    let begin = Instant::now();
    let key = key(name, password);
    let (mut held, mut refused, mut n) = (Vec::new(), 0, 0);
    while begin.elapsed() < time {
        n += 1;
        let socket = UdpSocket::bind((address(n), 0)).unwrap();
        socket.connect(to).unwrap();
        let timeout = Some(Duration::from_millis(200));
        socket.set_read_timeout(timeout).unwrap();
        let nonce = ask(&socket, &request(ALLOCATE, &[UDP], None)).and_then(|answer| {
            let answer = Message::from_bytes(&answer).ok()?;
            let nonce = answer.attribute::<Nonce>().ok()?;
            Some(nonce.nonce().to_owned())
        });
        let Some(nonce) = nonce else {
            refused += 1;
            continue;
        };
        let signed = |method, more| {
            let attributes = [
                more,
                (USERNAME, name.as_bytes()),
                (REALM, OWN_REALM.as_bytes()),
                (NONCE, nonce.as_bytes()),
            ];
            request(method, &attributes, Some(&key))
        };
        let answer = ask(&socket, &signed(ALLOCATE, UDP));
        let is_made = answer.is_some_and(|answer| {
            let answer = Message::from_bytes(&answer).unwrap();
            answer.attribute::<ErrorCode>().is_err()
        });
        if is_made {
            held.push((socket, signed(REFRESH, (LIFETIME, &[0; 4]))));
        } else {
            refused += 1;
        }
    }
    for (socket, end) in &held {
        ask(socket, end);
    }
    (held.len() as u64, refused)
}

/// Sends a request, and waits briefly for the answer.
fn ask(socket: &UdpSocket, request: &[u8]) -> Option<Vec<u8>> {
    let mut buf = [0; 1_500];
    socket.send(request).ok()?;
    let len = socket.recv(&mut buf).ok()?;
    Some(buf[..len].to_vec())
}
