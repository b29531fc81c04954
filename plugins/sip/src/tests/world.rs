//! A server with the plugin, and the commands to its SIP stack.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use portunus_core::CoreConfig;
use portunus_core::testing::{Line, TestClient, TestServer, everywhere, jsep};
use portunus_sip::agent::{AccountId, AgentEvent, CallId, Cause, Command};
use portunus_sip::dialog::DialogId;
use portunus_sip::message::{Message, Request, Response};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::config::SipConfig;
use crate::media::MediaContext;
use crate::plugin::Sip;
use crate::shared::Shared;

pub(super) const PACKAGE: &str = "janus.plugin.sip";

pub(super) struct World {
    pub(super) server: TestServer,
    pub(super) shared: Arc<Shared>,
    commands: mpsc::UnboundedReceiver<Command>,
    events: mpsc::Sender<AgentEvent>,
}

/// The description of a telephone: audio by G.711 and telephone events.
pub(super) const PHONE: &str = "v=0\r\no=- 1 1 IN IP4 192.0.2.9\r\ns=-\r\nc=IN IP4 192.0.2.9\r\nt=0 0\r\n\
    m=audio 4000 RTP/AVP 111\r\na=rtpmap:111 opus/48000/2\r\n";

impl World {
    pub(super) fn new() -> Self {
        Self::with(SipConfig::default())
    }

    pub(super) fn with(config: SipConfig) -> Self {
        Self::watched(config, |_| {})
    }

    /// As [`World::with`]. `watch` is called for each command, under the locks of who sends it.
    pub(super) fn watched(
        config: SipConfig,
        watch: impl Fn(&Command) + Send + Sync + 'static,
    ) -> Self {
        let config = SipConfig {
            outgoing: everywhere(),
            ..config
        };
        let (told, commands) = mpsc::unbounded_channel();
        let (events, agent) = mpsc::channel(100);
        let (start, shared) = (Mutex::new(Some((agent, watch))), Mutex::new(None));
        let server = TestServer::with(CoreConfig::default(), |media| {
            let (context, news) = MediaContext::new(&config, (media.clone(), None), None);
            let (agent, watch) = start.lock().unwrap().take().unwrap();
            let commands = Arc::new(move |command| {
                watch(&command);
                let _ = told.send(command);
            });
            let sip = Sip::on(config.clone(), context, (commands, None), agent, news);
            *shared.lock().unwrap() = Some(sip.shared.clone());
            vec![Arc::new(sip)]
        });
        let shared = shared.lock().unwrap().take().unwrap();
        World {
            server,
            shared,
            commands,
            events,
        }
    }

    /// Returns the next command to the SIP stack.
    pub(super) async fn command(&mut self) -> Command {
        let command = timeout(Duration::from_secs(10), self.commands.recv()).await;
        command.expect("a command in time").expect("the plugin")
    }

    /// Fails if there is another command.
    pub(super) async fn expect_no_command(&mut self) {
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        if let Ok(command) = self.commands.try_recv() {
            panic!("unexpected: {command:?}");
        }
    }

    pub(super) async fn happen(&self, event: AgentEvent) {
        self.events.send(event).await.expect("the plugin");
    }

    /// A page that has registered `sip:NAME@example.org` with its secret.
    pub(super) async fn page(&mut self, name: &str, more: Value) -> (TestClient, AccountId) {
        let mut page = self.server.attach(PACKAGE).await;
        let mut body = json!({
            "request": "register", "username": format!("sip:{name}@example.org"), "secret": "s",
        });
        let members = body.as_object_mut().unwrap();
        members.extend(more.as_object().unwrap().clone());
        let (reply, transaction) = ask(&mut page, body, None).await;
        assert_eq!(reply["result"]["event"], "registering", "{reply}");
        assert!(transaction);
        let Command::SetAccount { account, .. } = self.command().await else {
            panic!("no account")
        };
        self.register(account).await;
        let registered = page.event().await;
        assert_eq!(registered["result"]["event"], "registered", "{registered}");
        (page, account)
    }

    pub(super) async fn register(&self, account: AccountId) {
        let expires = Duration::from_secs(60);
        let response = Arc::new(response("200 OK", "", ""));
        self.happen(AgentEvent::Registered {
            account,
            expires,
            response,
        })
        .await;
    }

    /// The registrar confirms the end of an account.
    pub(super) async fn unregister(&self, account: AccountId) {
        let response = None;
        self.happen(AgentEvent::Unregistered { account, response })
            .await;
    }

    /// A call that a page makes and that the peer has accepted.
    pub(super) async fn talk(&mut self, page: &mut TestClient) -> (CallId, String) {
        let (id, call_id) = self.call(page, json!({})).await;
        self.accept(id, &call_id, PHONE).await;
        let (accepted, answer) = page.event_with_jsep().await;
        assert_eq!(accepted["result"]["event"], "accepted", "{accepted}");
        assert_eq!(answer.unwrap()["type"], "answer");
        (id, call_id)
    }

    /// A call that a page makes.
    pub(super) async fn call(&mut self, page: &mut TestClient, more: Value) -> (CallId, String) {
        let mut body = json!({ "request": "call", "uri": "sip:bob@example.org" });
        let members = body.as_object_mut().unwrap();
        members.extend(more.as_object().unwrap().clone());
        let (calling, _) = ask(page, body, Some(offer())).await;
        assert_eq!(calling["result"]["event"], "calling", "{calling}");
        match self.command().await {
            Command::Invite { call, invite, .. } => (call, invite.call_id.unwrap()),
            other => panic!("{other:?}"),
        }
    }

    pub(super) async fn accept(&self, call: CallId, call_id: &str, sdp: &str) {
        self.happen(AgentEvent::Accepted {
            call,
            dialog: dialog(call_id),
            response: Arc::new(response("200 OK", "Contact: <sip:b@h>\r\n", sdp)),
        })
        .await;
    }

    /// Somebody calls an account.
    pub(super) async fn ring(&self, account: AccountId, number: u64, sdp: &str) -> CallId {
        let call = CallId::new(number);
        let headers = "From: \"Carol\" <sip:carol@example.org>;tag=c\r\n";
        self.happen(AgentEvent::Incoming {
            call,
            account: Some(account),
            entrances: Vec::new(),
            flow: flow(),
            dialog: dialog(&format!("in-{number}")),
            replaces: None,
            request: Arc::new(request("INVITE", headers, sdp)),
        })
        .await;
        call
    }

    pub(super) async fn end(&self, call: CallId, cause: Cause, code: u16, reason: &str) {
        self.happen(AgentEvent::Ended {
            call,
            cause,
            code,
            reason: reason.to_owned(),
            message: None,
        })
        .await;
    }

    /// The proxy cancels a call, with this Reason.
    pub(super) async fn cancel(&self, call: CallId, reason: &str) {
        let cancel = request("CANCEL", &format!("Reason: {reason}\r\n"), "");
        self.happen(AgentEvent::Ended {
            call,
            cause: Cause::Cancelled,
            code: 487,
            reason: String::new(),
            message: Some(Arc::new(Message::Request(cancel))),
        })
        .await;
    }
}

pub(super) fn offer() -> Value {
    jsep("offer", "abcd", &[Line::Audio])
}

pub(super) fn answer() -> Value {
    jsep("answer", "abcd", &[Line::Audio])
}

/// Sends a message. Returns the data of the next event, and whether it answers the message.
pub(super) async fn ask(page: &mut TestClient, body: Value, jsep: Option<Value>) -> (Value, bool) {
    page.message(body, jsep).await;
    let event = page.next().await;
    let data = event["plugindata"]["data"].clone();
    (data, event["transaction"] == "m")
}

pub(super) fn dialog(call_id: &str) -> DialogId {
    DialogId {
        call_id: call_id.to_owned(),
        local_tag: "ours".to_owned(),
        remote_tag: "theirs".to_owned(),
    }
}

pub(super) fn response(line: &str, headers: &str, body: &str) -> Response {
    match message(&format!("SIP/2.0 {line}\r\n"), "INVITE", headers, body) {
        Message::Response(response) => response,
        Message::Request(_) => panic!("a request"),
    }
}

pub(super) fn request(method: &str, headers: &str, body: &str) -> Request {
    let line = format!("{method} sip:alice@192.0.2.1 SIP/2.0\r\n");
    match message(&line, method, headers, body) {
        Message::Request(request) => request,
        Message::Response(_) => panic!("a response"),
    }
}

fn message(line: &str, method: &str, headers: &str, body: &str) -> Message {
    let from = match headers.contains("From:") {
        true => "",
        false => "From: <sip:bob@example.org>;tag=b\r\n",
    };
    let kind = match body.is_empty() || headers.contains("Content-Type") {
        true => "",
        false => "Content-Type: application/sdp\r\n",
    };
    let contact = match headers.contains("Contact:") {
        true => "",
        false => "Contact: <sip:bob@192.0.2.9>\r\n",
    };
    let text = format!(
        "{line}Via: SIP/2.0/UDP 192.0.2.9;branch=z9hG4bK7\r\n{from}To: <sip:alice@example.org>\r\nCall-ID: c\r\n\
         CSeq: 1 {method}\r\nMax-Forwards: 70\r\n{contact}{kind}{headers}Content-Length: {}\r\n\r\n{body}",
        body.len(),
    );
    Message::parse(text.as_bytes()).unwrap()
}

pub(super) fn flow() -> portunus_sip::flow::Flow {
    portunus_sip::flow::Flow {
        transport: portunus_sip::flow::Transport::Udp,
        local: ([192, 0, 2, 1], 5060).into(),
        remote: ([192, 0, 2, 9], 5060).into(),
        connection: None,
    }
}
