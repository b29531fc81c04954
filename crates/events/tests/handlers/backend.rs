//! An HTTP server with scripted answers.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::lifecycle::{numbers, until};

/// The answer to a request.
#[derive(Debug, Clone, Copy)]
pub enum Answer {
    /// These bytes, and the connection stays.
    Says(&'static str),
    /// These bytes, and the connection ends.
    SaysAndCloses(&'static str),
    /// The connection ends, without an answer.
    Closes,
    /// The connection is reset.
    Resets,
    /// None, for as long as the client waits.
    Hangs,
}

pub const OK: Answer = Answer::Says("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");

/// A request.
#[derive(Debug, Clone)]
pub struct Request {
    pub at: Instant,
    head: String,
    pub body: Vec<u8>,
}

impl Request {
    /// Returns the value of a header, whose name is in lower case.
    pub fn header(&self, name: &str) -> Option<String> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let mut values = lines.filter(|(header, _)| header.eq_ignore_ascii_case(name));
        values.next().map(|(_, value)| value.to_owned())
    }

    pub fn line(&self) -> &str {
        self.head.lines().next().unwrap()
    }
}

/// The server. It ends with the test.
pub struct Backend {
    pub address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
    accepting: JoinHandle<()>,
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Backend {
    /// Answers requests with these in turn, and further ones with [`OK`].
    pub async fn start(answers: impl IntoIterator<Item = Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::on(listener, answers)
    }

    pub fn on(listener: TcpListener, answers: impl IntoIterator<Item = Answer>) -> Self {
        let address = listener.local_addr().unwrap();
        let requests: Arc<Mutex<Vec<Request>>> = Arc::default();
        let answers: VecDeque<Answer> = answers.into_iter().collect();
        let answers = Arc::new(Mutex::new(answers));
        let noted = requests.clone();
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve_tcp(stream, noted.clone(), answers.clone()));
            }
        });
        Backend {
            address,
            requests,
            accepting,
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}/events", self.address)
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// Returns the numbers of all received events in order, with repetitions.
    pub fn numbers(&self) -> Vec<u64> {
        let requests = self.requests();
        requests
            .iter()
            .flat_map(|request| numbers(&request.body))
            .collect()
    }

    /// Waits for this number of requests.
    pub async fn until_requests(&self, count: usize) -> Vec<Request> {
        let state = || format!("{} requests came", self.requests().len());
        until(|| self.requests().len() >= count, state).await;
        self.requests()
    }
}

type Noted = Arc<Mutex<Vec<Request>>>;
type Answers = Arc<Mutex<VecDeque<Answer>>>;

async fn serve_tcp(mut stream: TcpStream, requests: Noted, answers: Answers) {
    while let Some(request) = read(&mut stream).await {
        requests.lock().unwrap().push(request);
        let answer = answers.lock().unwrap().pop_front().unwrap_or(OK);
        match answer {
            Answer::Says(text) => stream.write_all(text.as_bytes()).await.unwrap(),
            Answer::SaysAndCloses(text) => {
                stream.write_all(text.as_bytes()).await.unwrap();
                return;
            }
            Answer::Closes => return,
            Answer::Resets => return stream.set_zero_linger().unwrap(),
            Answer::Hangs => {
                let _ = stream.read(&mut [0]).await;
                return;
            }
        }
    }
}

/// Takes requests over any connection, and answers all with 200.
pub async fn serve_well(mut stream: impl AsyncRead + AsyncWrite + Unpin, requests: &Noted) {
    let Answer::Says(ok) = OK else { unreachable!() };
    while let Some(request) = read(&mut stream).await {
        requests.lock().unwrap().push(request);
        stream.write_all(ok.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
    }
}

async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Option<Request> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let mut request = Request {
        at: Instant::now(),
        head: String::from_utf8(head).unwrap(),
        body: Vec::new(),
    };
    let length = request.header("content-length").unwrap().parse().unwrap();
    request.body = vec![0; length];
    stream.read_exact(&mut request.body).await.ok()?;
    Some(request)
}
