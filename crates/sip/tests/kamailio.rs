//! Kamailio as registrar and proxy, over each transport: an account registers, is called through it, and unregisters.
//! Skipped with a message where it is not installed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "the names say all"
)]

use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use openssl::asn1::Asn1Time;
use openssl::ec::{EcGroup, EcKey};
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::PKey;
use openssl::x509::extension::SubjectAlternativeName;
use openssl::x509::{X509, X509Name};
use portunus_sip::agent::{
    AccountId, AgentEvent, Body, CallId, Cause, Command as Ask, Invite, Profile, Registration,
};
use portunus_sip::digest::Credentials;
use portunus_sip::flow::Transport;
use portunus_sip::net::{Config, Endpoint, Listen, TlsFiles};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

const LIMIT: Duration = Duration::from_secs(30);
const PROGRAM: &str = "/usr/sbin/kamailio";

/// Who is called: the secret of a user is its name and `-secret`.
const ROUTES: &str = r#"
request_route {
  force_rport();
  if (proto != UDP && is_method("INVITE")) add_contact_alias();
  if (is_method("CANCEL")) { if (t_check_trans()) t_relay(); exit; }
  if (has_totag()) {
    if (loose_route()) { handle_ruri_alias(); if (!is_method("ACK")) t_on_reply("ANSWERED"); t_relay(); }
    else if (is_method("ACK")) { if (t_check_trans()) t_relay(); }
    else { sl_send_reply("481", "Call/Transaction Does Not Exist"); }
    exit;
  }
  $var(secret) = $fU + "-secret";
  if (is_method("REGISTER")) {
    if (!pv_www_authenticate("portunus.test", "$var(secret)", "0")) { www_challenge("portunus.test", "1"); exit; }
    if (proto != UDP) fix_nated_register();
    save("location");
    exit;
  }
  if (!pv_proxy_authenticate("portunus.test", "$var(secret)", "0")) { proxy_challenge("portunus.test", "1"); exit; }
  consume_credentials();
  record_route();
  if (!lookup("location")) { sl_send_reply("404", "Not Found"); exit; }
  t_on_reply("ANSWERED");
  t_relay();
}
onreply_route[ANSWERED] { if (proto != UDP) add_contact_alias(); }
event_route[xhttp:request] { if (ws_handle_handshake()) exit; xhttp_reply("404", "Not Found", "", ""); }
"#;

/// The guide whose configuration is tried.
const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guides/phone.md");

struct Kamailio {
    process: Child,
    plain: u16,
    tls: u16,
    websocket: u16,
    folder: tempfile::TempDir,
}

/// A user with its password.
type User<'a> = (&'a str, &'a str);

impl Kamailio {
    /// One for each transport. `None` if it is not installed.
    async fn start() -> Option<Self> {
        let folder = folder();
        let (plain, tls, websocket) = (free_port(), free_port(), free_port());
        let at = folder.path().display();
        let modules = [
            "kex",
            "tm",
            "sl",
            "rr",
            "pv",
            "siputils",
            "textops",
            "auth",
            "usrloc",
            "registrar",
            "nathelper",
            "tls",
            "xhttp",
            "websocket",
        ];
        let modules: String = modules
            .iter()
            .map(|name| format!("loadmodule \"{name}.so\"\n"))
            .collect();
        let config = format!(
            "#!KAMAILIO\ndebug=0\nlog_stderror=yes\nchildren=1\ntcp_children=1\nauto_aliases=no\nenable_tls=yes\ntcp_accept_no_cl=yes\n\
             listen=udp:127.0.0.1:{plain}\nlisten=tcp:127.0.0.1:{plain}\nlisten=tls:127.0.0.1:{tls}\nlisten=tcp:127.0.0.1:{websocket}\n\
             {modules}\
             modparam(\"auth\", \"qop\", \"auth\")\nmodparam(\"auth\", \"nonce_count\", 1)\n\
             modparam(\"registrar\", \"received_avp\", \"$avp(received)\")\nmodparam(\"nathelper\", \"received_avp\", \"$avp(received)\")\n\
             modparam(\"tls\", \"tls_method\", \"TLSv1.2+\")\nmodparam(\"tls\", \"certificate\", \"{at}/certificate.pem\")\nmodparam(\"tls\", \"private_key\", \"{at}/key.pem\")\n{ROUTES}"
        );
        Self::run(&config, folder, (plain, tls, websocket)).await
    }

    /// As the guide has it, but on free ports. `None` if it is not installed.
    async fn of_guide() -> Option<Self> {
        let guide = std::fs::read_to_string(GUIDE).unwrap();
        let mut blocks = guide.split("```\n");
        let config = blocks.find(|block| block.starts_with("#!KAMAILIO\n"));
        let config = config.expect("a configuration in the guide");
        let port = free_port();
        let listen =
            format!("log_stderror=yes\nlisten=udp:127.0.0.1:{port}\nlisten=tcp:127.0.0.1:{port}\n");
        let config = format!("{config}\n{listen}");
        Self::run(&config, folder(), (port, 0, port)).await
    }

    /// Returns once there is a connection to the last of the ports.
    async fn run(
        config: &str,
        folder: tempfile::TempDir,
        (plain, tls, websocket): (u16, u16, u16),
    ) -> Option<Self> {
        if !Path::new(PROGRAM).exists() {
            eprintln!("skipped: {PROGRAM} is not installed");
            return None;
        }
        std::fs::write(folder.path().join("kamailio.cfg"), config).unwrap();
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let process = Command::new(PROGRAM)
            .args(["-DD", "-E", "-m", "32", "-M", "4", "-f"])
            .arg(folder.path().join("kamailio.cfg"))
            .arg("-Y")
            .arg(folder.path())
            .args(["-w"])
            .arg(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .process_group(0)
            .spawn()
            .unwrap();
        let started = async {
            while tokio::net::TcpStream::connect((Ipv4Addr::LOCALHOST, websocket))
                .await
                .is_err()
            {
                sleep(Duration::from_millis(50)).await;
            }
        };
        let kamailio = Self {
            process,
            plain,
            tls,
            websocket,
            folder,
        };
        timeout(LIMIT, started).await.expect("Kamailio listens");
        Some(kamailio)
    }

    fn uri(&self, transport: Transport) -> String {
        let port = match transport {
            Transport::Udp | Transport::Tcp => self.plain,
            Transport::Tls => self.tls,
            Transport::Ws | Transport::Wss => self.websocket,
        };
        format!("sip:127.0.0.1:{port};transport={}", transport.param())
    }
}

impl Drop for Kamailio {
    fn drop(&mut self) {
        // Its workers are processes, too.
        let _ = killpg(
            Pid::from_raw(self.process.id().try_into().unwrap()),
            Signal::SIGKILL,
        );
        let _ = self.process.wait();
        if std::thread::panicking() {
            eprintln!(
                "{}",
                std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
            );
        }
    }
}

/// A port for UDP and TCP that was free a moment ago; the kernel gives it to nobody (32768 to 60999).
fn free_port() -> u16 {
    loop {
        let address = SocketAddr::from(([127, 0, 0, 1], rand::random_range(10_000..32_768)));
        if TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok() {
            return address.port();
        }
    }
}

/// A folder with a certificate for this machine.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write_certificate(folder.path());
    folder
}

fn write_certificate(folder: &Path) {
    let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).unwrap();
    let key = PKey::from_ec_key(EcKey::generate(&group).unwrap()).unwrap();
    let mut name = X509Name::builder().unwrap();
    name.append_entry_by_text("CN", "localhost").unwrap();
    let name = name.build();
    let mut builder = X509::builder().unwrap();
    builder.set_version(2).unwrap();
    builder.set_subject_name(&name).unwrap();
    builder.set_issuer_name(&name).unwrap();
    builder.set_pubkey(&key).unwrap();
    builder
        .set_not_before(&Asn1Time::days_from_now(0).unwrap())
        .unwrap();
    builder
        .set_not_after(&Asn1Time::days_from_now(1).unwrap())
        .unwrap();
    let mut names = SubjectAlternativeName::new();
    let names = names
        .dns("localhost")
        .ip("127.0.0.1")
        .build(&builder.x509v3_context(None, None))
        .unwrap();
    builder.append_extension(names).unwrap();
    builder.sign(&key, MessageDigest::sha256()).unwrap();
    std::fs::write(
        folder.join("certificate.pem"),
        builder.build().to_pem().unwrap(),
    )
    .unwrap();
    std::fs::write(
        folder.join("key.pem"),
        key.private_key_to_pem_pkcs8().unwrap(),
    )
    .unwrap();
}

struct Phone {
    endpoint: Endpoint,
    events: mpsc::Receiver<AgentEvent>,
}

impl Phone {
    /// Registers `user`, which takes a challenge.
    async fn register(
        kamailio: &Kamailio,
        transport: Transport,
        (user, password): User<'_>,
    ) -> Self {
        let file = |name: &str| Some(kamailio.folder.path().join(name));
        let config = Config {
            listen: vec![
                Listen {
                    transport: Transport::Udp,
                    address: (Ipv4Addr::LOCALHOST, 0).into(),
                },
                Listen {
                    transport: Transport::Tcp,
                    address: (Ipv4Addr::LOCALHOST, 0).into(),
                },
            ],
            tls: TlsFiles {
                authorities: file("certificate.pem"),
                ..TlsFiles::default()
            },
            ..Config::default()
        };
        let (endpoint, events) = Endpoint::start(config).unwrap();
        let mut phone = Self { endpoint, events };
        let uri = kamailio.uri(transport).parse().unwrap();
        let profile = Profile {
            identity: format!("sip:{user}@127.0.0.1:{}", kamailio.plain)
                .parse()
                .unwrap(),
            display_name: user.to_owned(),
            credentials: Some(Credentials::password(user, password)),
            registration: Some(Registration {
                registrar: None,
                expires: Duration::from_secs(600),
                headers: Vec::new(),
                keepalive: None,
                retry: false,
            }),
            outbound_proxy: Some(uri),
            transport: Some(transport),
            user_agent: None,
            contact_params: Vec::new(),
            behind_nat: false,
            refers: true,
            entrance: false,
            trace: false,
        };
        phone.command(Ask::SetAccount {
            account: AccountId::new(1),
            profile: Box::new(profile),
        });
        match phone.event().await {
            AgentEvent::Registered { .. } => phone,
            other => panic!("{transport}: {other:?}"),
        }
    }

    fn command(&self, command: Ask) {
        self.endpoint.command(command);
    }

    async fn event(&mut self) -> AgentEvent {
        timeout(LIMIT, self.events.recv())
            .await
            .expect("an event in time")
            .expect("the endpoint runs")
    }
}

fn sdp() -> Body {
    let content = b"v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 9 RTP/AVP 0\r\n".to_vec();
    Body {
        content_type: "application/sdp".to_owned(),
        content,
    }
}

/// Both register, the first calls the second, which hangs up, and both unregister.
async fn register_and_call(kamailio: &Kamailio, transport: Transport, users: [User<'_>; 2]) {
    let [caller, called] = users;
    let mut alice = Phone::register(kamailio, transport, caller).await;
    let mut bob = Phone::register(kamailio, transport, called).await;
    let invite = Invite {
        uri: format!("sip:{}@127.0.0.1:{}", called.0, kamailio.plain)
            .parse()
            .unwrap(),
        call_id: None,
        offer: Some(sdp()),
        headers: Vec::new(),
        credentials: None,
        cancel_early: false,
    };
    alice.command(Ask::Invite {
        account: AccountId::new(1),
        call: CallId::new(1),
        invite: Box::new(invite),
    });
    let AgentEvent::Incoming {
        call,
        account,
        flow,
        ..
    } = bob.event().await
    else {
        panic!("{transport}")
    };
    assert_eq!(
        (account, flow.transport),
        (Some(AccountId::new(1)), transport)
    );
    bob.command(Ask::Progress {
        call,
        code: 180,
        headers: Vec::new(),
        body: None,
    });
    let AgentEvent::Provisional { .. } = alice.event().await else {
        panic!("{transport}")
    };
    bob.command(Ask::Accept {
        call,
        headers: Vec::new(),
        body: Some(sdp()),
    });
    let AgentEvent::Accepted { .. } = alice.event().await else {
        panic!("{transport}")
    };
    let AgentEvent::Acknowledged { .. } = bob.event().await else {
        panic!("{transport}")
    };
    bob.command(Ask::Hangup {
        call,
        headers: Vec::new(),
    });
    let AgentEvent::Ended {
        cause: Cause::Bye, ..
    } = alice.event().await
    else {
        panic!("{transport}")
    };
    let AgentEvent::Ended {
        cause: Cause::Hangup,
        ..
    } = bob.event().await
    else {
        panic!("{transport}")
    };
    for phone in [&mut alice, &mut bob] {
        phone.command(Ask::RemoveAccount {
            account: AccountId::new(1),
        });
        let AgentEvent::Unregistered {
            response: Some(_), ..
        } = phone.event().await
        else {
            panic!("{transport}")
        };
    }
}

#[tokio::test]
async fn accounts_register_and_call_through_kamailio_over_each_transport() {
    let Some(kamailio) = Kamailio::start().await else {
        return;
    };
    for transport in [
        Transport::Udp,
        Transport::Tcp,
        Transport::Tls,
        Transport::Ws,
    ] {
        let names = ["caller", "called"].map(|name| format!("{name}-{}", transport.param()));
        let [caller, called] = names.map(|name| (format!("{name}-secret"), name));
        let users = [(&*caller.1, &*caller.0), (&*called.1, &*called.0)];
        register_and_call(&kamailio, transport, users).await;
    }
}

#[tokio::test]
async fn accounts_register_and_call_through_kamailio_as_the_guide_configures_it() {
    let Some(kamailio) = Kamailio::of_guide().await else {
        return;
    };
    let users = [("1001", "the password"), ("1002", "another password")];
    for transport in [Transport::Udp, Transport::Tcp] {
        register_and_call(&kamailio, transport, users).await;
    }
}
