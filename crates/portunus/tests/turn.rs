//! The built-in TURN server, as clients learn of it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod server;

use serde_json::json;
use server::{attach_to, metric, post, start};

const CONFIG: &str = "[turn]\nenabled = true\nhost = \"turn.example.org\"\nport = 0\n\
                      secret = \"north-by-northwest\"\ncredential_lifetime = 60\n";

#[test]
fn a_session_is_told_of_it_with_credentials_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, api) = start(folder.path(), CONFIG);
    let handle = attach_to(&api, "janus.plugin.echotest");
    let (session, _) = handle.rsplit_once('/').unwrap();
    let request = json!({ "janus": "ice_servers", "transaction": "t" });
    let reply = post(session, &request);
    assert_eq!(reply["janus"], "success", "{reply}");
    assert_eq!(reply["data"]["ttl"], 60);
    let server = &reply["data"]["ice_servers"][0];
    let urls = server["urls"].as_array().unwrap();
    assert_eq!(urls.len(), 2, "{reply}");
    for (url, transport) in urls.iter().zip(["udp", "tcp"]) {
        let url = url.as_str().unwrap();
        let rest = url
            .strip_prefix("turn:turn.example.org:")
            .expect("the host");
        assert!(rest.ends_with(transport), "{url}");
    }
    let (name, credential) = (server["username"].as_str().unwrap(), &server["credential"]);
    let key = openssl::pkey::PKey::hmac(b"north-by-northwest").unwrap();
    let digest = openssl::hash::MessageDigest::sha1();
    let mut signer = openssl::sign::Signer::new(digest, &key).unwrap();
    let expected = signer.sign_oneshot_to_vec(name.as_bytes()).unwrap();
    assert_eq!(*credential, openssl::base64::encode_block(&expected));
    // Another one is another's.
    let again = post(session, &request);
    assert_ne!(again["data"]["ice_servers"][0]["username"], name);
    // Only clients with a session get it.
    let reply = post(&api, &request);
    assert_eq!(reply["janus"], "error", "{reply}");
    let reply = post(&handle, &request);
    assert_eq!(reply["error"]["code"], 457, "{reply}");
    assert_eq!(metric(&api, "portunus_turn_allocations"), 0);
}

#[test]
fn without_it_there_is_nothing_to_be_told() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, api) = start(folder.path(), "");
    let handle = attach_to(&api, "janus.plugin.echotest");
    let (session, _) = handle.rsplit_once('/').unwrap();
    let reply = post(
        session,
        &json!({ "janus": "ice_servers", "transaction": "t" }),
    );
    assert_eq!(reply["data"], json!({ "ice_servers": [] }));
}
