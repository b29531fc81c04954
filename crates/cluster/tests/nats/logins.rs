//! Logins at the bus, and servers that are too old.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nkeys::KeyPair;
use portunus_brokers::BrokerTls;
use portunus_brokers::nats::{NatsLogin, addresses, options};
use portunus_cluster::{Folder, NodeId};
use serde_json::{Value, json};

use crate::site::{Member, Nats, Site, nats_server};

/// Connects, and asks the server for a sign of life. A server that refuses the login closes.
async fn logs_in(nats: &Nats, login: &NatsLogin) -> bool {
    let options = options(login, &BrokerTls::default()).unwrap();
    let client = options
        .connect(addresses(&nats.url()).unwrap())
        .await
        .unwrap();
    let flushed = tokio::time::timeout(std::time::Duration::from_secs(2), client.flush()).await;
    matches!(flushed, Ok(Ok(())))
        && client.connection_state() == async_nats::connection::State::Connected
}

#[tokio::test]
async fn a_node_logs_in_by_an_nkey() {
    let Some(program) = nats_server() else {
        return;
    };
    let (user, other) = (KeyPair::new_user(), KeyPair::new_user());
    let config = format!(
        "authorization {{ users: [ {{ nkey: {} }} ] }}\n",
        user.public_key()
    );
    let nats = Nats::start(&program, &config).await;
    let folder = tempfile::tempdir().unwrap();
    let login = |pair: &KeyPair, name: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, pair.seed().unwrap()).unwrap();
        NatsLogin {
            nkey: Some(path),
            ..NatsLogin::default()
        }
    };
    assert!(logs_in(&nats, &login(&user, "user")).await);
    assert!(!logs_in(&nats, &login(&other, "other")).await);
    assert!(!logs_in(&nats, &NatsLogin::default()).await);
}

/// A JWT of NATS, version 2.
fn jwt(issuer: &KeyPair, subject: &KeyPair, kind: &str, mut nats: Value) -> String {
    nats["type"] = kind.into();
    nats["version"] = 2.into();
    let head = json!({ "typ": "JWT", "alg": "ed25519-nkey" });
    let claims = json!({
        "jti": subject.public_key(), "iat": 1_700_000_000, "iss": issuer.public_key(),
        "name": kind, "sub": subject.public_key(), "nats": nats,
    });
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let text = format!("{}.{}", part(&head), part(&claims));
    let signature = URL_SAFE_NO_PAD.encode(issuer.sign(text.as_bytes()).unwrap());
    format!("{text}.{signature}")
}

#[tokio::test]
async fn a_client_logs_in_by_a_file_of_credentials() {
    let Some(program) = nats_server() else {
        return;
    };
    let (operator, account, user) = (
        KeyPair::new_operator(),
        KeyPair::new_account(),
        KeyPair::new_user(),
    );
    let operator_jwt = jwt(&operator, &operator, "operator", json!({}));
    let limits = json!({ "limits": { "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1,
        "wildcards": true, "conn": -1, "leaf": -1 } });
    let account_jwt = jwt(&operator, &account, "account", limits);
    let user_limits = json!({ "subs": -1, "data": -1, "payload": -1, "pub": {}, "sub": {} });
    let user_jwt = jwt(&account, &user, "user", user_limits);
    let config = format!(
        "operator: {operator_jwt}\nresolver: MEMORY\nresolver_preload: {{ {}: {account_jwt} }}\n",
        account.public_key()
    );
    let nats = Nats::start(&program, &config).await;
    let folder = tempfile::tempdir().unwrap();
    let login = |jwt: &str, seed: &KeyPair, name: &str| {
        let path = folder.path().join(name);
        write_credentials(&path, jwt, &seed.seed().unwrap());
        NatsLogin {
            credentials: Some(path),
            ..NatsLogin::default()
        }
    };
    assert!(logs_in(&nats, &login(&user_jwt, &user, "user.creds")).await);
    let other = KeyPair::new_user();
    assert!(!logs_in(&nats, &login(&user_jwt, &other, "other.creds")).await);
}

fn write_credentials(path: &Path, jwt: &str, seed: &str) {
    let text = format!(
        "-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n\
         -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
    );
    std::fs::write(path, text).unwrap();
}

/// Debian 12 has 2.9.
#[tokio::test]
async fn a_server_that_is_too_old_is_named() {
    let old = ["/usr/sbin/nats-server", "/usr/bin/nats-server"];
    let Some(old) = old.iter().map(Path::new).find(|path| path.exists()) else {
        println!("there is no older nats-server: it is not tested");
        return;
    };
    let site = Site {
        nats: Nats::start(old, "").await,
        folder: tempfile::tempdir().unwrap(),
    };
    let version = std::process::Command::new(old)
        .arg("--version")
        .output()
        .unwrap();
    if !String::from_utf8_lossy(&version.stdout).contains("v2.9.") {
        println!("the system's nats-server is new enough: an older one is not tested");
        return;
    }
    Folder::new(&site.place("a"))
        .init(&NodeId::new("a").unwrap())
        .unwrap();
    let node = Member::start(site.config("a")).await;
    let named = async {
        loop {
            let reason = node.cluster.degraded().unwrap_or_default();
            if reason.contains("2.11 or newer is needed") {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    let named = tokio::time::timeout(std::time::Duration::from_secs(20), named).await;
    named.unwrap_or_else(|_| panic!("{:?}", node.cluster.degraded()));
}
