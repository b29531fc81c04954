//! The owners of calls, whatever other pages claim (docs/sip.md#who-is-called).

use std::net::SocketAddr;

use portunus_sip_plugin::{SipConfig, TrunkConfig};
use portunus_tests::{Caller, free_port};
use serde_json::{Value, json};

use super::phone::Phone;
use super::{World, ask, until};

const NUMBER: &str = "+491234";

/// Starts a server with this port. Returns its address.
async fn world(trunks: Vec<TrunkConfig>) -> (World, SocketAddr) {
    let port = free_port();
    let config = SipConfig {
        listen: vec![format!("udp:{port}").parse().unwrap()],
        trunks,
        ..SipConfig::default()
    };
    (World::with(config).await, ([127, 0, 0, 1], port).into())
}

/// Returns a page that claims to be a guest of this name.
async fn guest(world: &World, uri: &str) -> Caller {
    let mut page = world.page().await;
    let body = json!({ "request": "register", "type": "guest", "username": uri });
    let registered = ask(&mut page, body).await;
    assert_eq!(registered["result"]["event"], "registered", "{registered}");
    page
}

async fn is_idle(world: &World, page: &Caller) -> bool {
    world.server.state(page).await["call_status"] == "idle"
}

#[tokio::test]
async fn no_page_takes_a_call_of_a_trunk() {
    let trunk = TrunkConfig {
        name: "office".to_owned(),
        from: vec!["127.0.0.9".parse().unwrap()],
        prefix: "+49".to_owned(),
        caller_user: "office".to_owned(),
        caller_password: "secret".to_owned(),
        ..TrunkConfig::default()
    };
    let (mut world, server) = world(vec![trunk]).await;
    let mut pages = vec![
        guest(&world, &format!("sip:{NUMBER}@127.0.0.1")).await,
        guest(&world, &format!("sip:{NUMBER}@{server}")).await,
        guest(&world, &format!("sip:{NUMBER}@127.0.0.9")).await,
    ];
    // At a registrar of its own, and with the trunk's name at a server of its own.
    let (own, _) = world.registered(NUMBER, json!({})).await;
    pages.push(own);
    let proxy = world.phone.uri("x").replace("x@", "");
    let by_proxy =
        json!({ "outbound_proxy": proxy, "username": format!("sip:{NUMBER}@127.0.0.9") });
    let (own, _) = world.registered(NUMBER, by_proxy).await;
    pages.push(own);
    let mut exchange = Phone::at("127.0.0.9").await;
    exchange.reach(server);
    let sdp = exchange.sdp();
    for (number, host) in ["127.0.0.1", &server.to_string(), "127.0.0.9"]
        .iter()
        .enumerate()
    {
        let called = format!("sip:{NUMBER}@{host}");
        let call_id = format!("trunk-{number}");
        let (_, mut talk) = exchange.call(&called, &call_id, &[], &sdp).await;
        // The trunk sends a challenge.
        let challenge = exchange.response(401).await;
        exchange.acknowledge(&mut talk, &challenge, "").await;
    }
    for page in &pages {
        assert!(is_idle(&world, page).await);
    }
}

#[tokio::test]
async fn a_call_to_a_contact_is_its_accounts_wherever_it_comes_from() {
    let (mut world, server) = world(Vec::new()).await;
    let mut ann = world.page().await;
    let contact = world.register(&mut ann, "ann", json!({})).await;
    until(&mut ann, "registered").await;
    let names = [format!("sip:ann@{server}"), contact.clone()];
    let mut guests = Vec::new();
    for name in &names {
        guests.push(guest(&world, name).await);
    }
    let mut elsewhere = Phone::at("127.0.0.2").await;
    elsewhere.reach(server);
    let sdp = elsewhere.sdp();
    let (_, mut talk) = elsewhere.call(&contact, "by-contact", &[], &sdp).await;
    let incoming = until(&mut ann, "incomingcall").await;
    let told: &Value = &incoming["plugindata"]["data"];
    assert_eq!(told["call_id"], "by-contact");
    ann.message(json!({ "request": "decline", "code": 486 }), None)
        .await;
    let busy = elsewhere.response(486).await;
    elsewhere.acknowledge(&mut talk, &busy, "").await;
    // By the name alone, from there, nobody is called.
    let (_, mut talk) = elsewhere.call(&names[0], "by-name", &[], &sdp).await;
    let nobody = elsewhere.response(404).await;
    elsewhere.acknowledge(&mut talk, &nobody, "").await;
    for page in &guests {
        assert!(is_idle(&world, page).await);
    }
}
