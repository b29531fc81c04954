//! The WebSocket of a participant.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use livekit_protocol::{DisconnectReason, leave_request};
use tokio::sync::watch;
use tokio::time::{interval, timeout};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Data};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::upgrade::{Socket, send};
use crate::frame::{self, Form, Frame};
use crate::hall::{Event, Input, Wire};
use crate::refusals::BadInput;
use crate::session::{Joined, leave};

/// The interval of pings.
const PING_INTERVAL: Duration = Duration::from_secs(10);

/// How long a client may take to read a frame.
const WRITE_LIMIT: Duration = Duration::from_secs(10);

/// How long a client may take to answer that the connection is closed.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);

/// How many frames that cannot be read are tolerated.
const MAX_BROKEN: u32 = 16;

/// Serves a participant until either side ends the connection.
pub(super) async fn run(socket: Socket, joined: Joined) {
    let Joined {
        wire,
        inputs,
        member,
        purse,
    } = joined;
    let generation = wire.generation;
    let (sink, mut stream) = socket.split();
    let (form, forms) = watch::channel(Form::default());
    let reader = async {
        let mut broken = 0;
        while let Some(Ok(message)) = stream.next().await {
            let (of, content) = match message {
                Message::Binary(content) => (Form::Binary, content),
                Message::Text(text) => (Form::Json, Bytes::from(text)),
                Message::Close(_) => return,
                Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => continue,
            };
            form.send_replace(of);
            // A message takes about twice its size once it is read.
            let Ok(paid) = purse.take(content.len().saturating_mul(2)) else {
                tracing::debug!("there is no memory for a client's message");
                return;
            };
            match frame::read(of, &content) {
                Ok(request) => {
                    let input = Input {
                        request,
                        generation: Some(generation),
                        _paid: paid,
                    };
                    // A full queue slows the client down. After the session's end the writer still
                    // has to send the last frames.
                    if inputs.send(input).await.is_err() {
                        pending::<()>().await;
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, "a frame cannot be read");
                    member.hall.refusals.count(BadInput::Frame);
                    broken += 1;
                    if broken > MAX_BROKEN {
                        return;
                    }
                }
            }
        }
    };
    let is_closed = tokio::select! {
        () = reader => false,
        () = write(sink, wire, forms) => true,
    };
    member.happens(Event::Closed { generation });
    // Its room may end now.
    drop((member, inputs, purse));
    if is_closed {
        read_out(stream).await;
    }
}

/// Reads until the client closes the connection. Closing a socket with unread data resets it, and
/// the client would lose the last frames.
async fn read_out(mut stream: SplitStream<Socket>) {
    let rest = async { while let Some(Ok(_)) = stream.next().await {} };
    let _ = timeout(CLOSE_LIMIT, rest).await;
}

/// Sends the frames of a participant, and closes the connection when they end.
async fn write(mut sink: SplitSink<Socket, Message>, mut wire: Wire, forms: watch::Receiver<Form>) {
    let mut pings = interval(PING_INTERVAL);
    pings.tick().await;
    loop {
        let written = tokio::select! {
            frame = wire.frames.recv() => match frame {
                Some(frame) => {
                    let form = *forms.borrow();
                    timeout(WRITE_LIMIT, write_frame(&mut sink, &frame, form)).await
                }
                None => break,
            },
            _ = pings.tick() => {
                let ping = Message::Ping(Bytes::new());
                timeout(WRITE_LIMIT, sink.send(ping)).await
            }
        };
        match written {
            Ok(Ok(())) => {}
            Ok(Err(_)) | Err(_) => return,
        }
    }
    close(&mut sink).await;
}

async fn write_frame(
    sink: &mut SplitSink<Socket, Message>,
    frame: &Arc<Frame>,
    form: Form,
) -> Result<(), Error> {
    let kind = match form {
        Form::Binary => Data::Binary,
        Form::Json => Data::Text,
    };
    send(sink, kind, frame.content(form)).await
}

async fn close(sink: &mut SplitSink<Socket, Message>) {
    let frame = CloseFrame {
        code: CloseCode::Normal,
        reason: "".into(),
    };
    // An error does not matter.
    let _ = timeout(WRITE_LIMIT, sink.send(Message::Close(Some(frame)))).await;
}

/// Tells a client that its session is gone, so that it has to join anew.
pub(super) async fn refuse(socket: Socket) {
    let (mut sink, stream) = socket.split();
    let reason = DisconnectReason::StateMismatch;
    let frame = Arc::new(Frame::new(leave(reason, leave_request::Action::Reconnect)));
    let sent = write_frame(&mut sink, &frame, Form::Binary);
    // An error does not matter.
    let _ = timeout(WRITE_LIMIT, sent).await;
    close(&mut sink).await;
    read_out(stream).await;
}
