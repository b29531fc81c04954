//! Calls of methods of participants by the services.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use livekit_protocol::{DataPacket, PerformRpcRequest, RpcError, RpcRequest, data_packet};
use prost::Message;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::services::{Code, ServiceError};

/// The longest payload of a call, in bytes.
const MAX_PAYLOAD: usize = 15 << 10;

/// How long a participant may take to take a call.
const ACK_LIMIT: Duration = Duration::from_secs(7);

/// How long a participant may take to answer a call that names no time.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// The most calls of a room that wait for answers.
const MAX_CALLS: usize = 1_024;

/// The version of calls in a single packet.
const VERSION: u32 = 1;

/// Errors that the server finds.
const REQUEST_TOO_LARGE: u32 = 1402;
const CONNECTION_TIMEOUT: u32 = 1501;
const RESPONSE_TIMEOUT: u32 = 1502;
const RECIPIENT_DISCONNECTED: u32 = 1503;

/// The calls of a room that wait for answers.
#[derive(Debug, Default)]
pub(crate) struct Calls(Mutex<HashMap<String, Pending>>);

/// A call that waits.
#[derive(Debug)]
struct Pending {
    to: String,
    progress: mpsc::Sender<Progress>,
}

/// What a participant says of a call.
#[derive(Debug, PartialEq)]
enum Progress {
    Taken,
    Answered(Result<String, RpcError>),
}

/// A call. It is forgotten when this is dropped.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    calls: &'a Calls,
    id: String,
    progress: mpsc::Receiver<Progress>,
    limit: Duration,
}

/// Returns how long the participant may take.
pub(crate) fn limit(request: &PerformRpcRequest) -> Duration {
    match request.response_timeout_ms {
        0 => ANSWER_LIMIT,
        ms => Duration::from_millis(ms.into()),
    }
}

impl Calls {
    /// Begins a call. Returns it with the packet to send.
    pub(crate) fn begin(
        &self,
        request: &PerformRpcRequest,
    ) -> Result<(Call<'_>, Vec<u8>), ServiceError> {
        if request.payload.len() > MAX_PAYLOAD {
            let text = "Request payload too large";
            return Err(error(REQUEST_TOO_LARGE, text, ""));
        }
        let limit = limit(request);
        let id = uuid::Uuid::new_v4().to_string();
        let (sender, progress) = mpsc::channel(2);
        let mut calls = self.calls();
        if calls.len() >= MAX_CALLS {
            let text = "too many calls wait for answers";
            return Err(ServiceError::new(Code::ResourceExhausted, text));
        }
        let pending = Pending {
            to: request.destination_identity.clone(),
            progress: sender,
        };
        calls.insert(id.clone(), pending);
        drop(calls);
        let call = RpcRequest {
            id: id.clone(),
            method: request.method.clone(),
            payload: request.payload.clone(),
            response_timeout_ms: u32::try_from(limit.as_millis()).unwrap_or(u32::MAX),
            version: VERSION,
            ..RpcRequest::default()
        };
        let packet = DataPacket {
            // The participant answers to this identity.
            participant_identity: id.clone(),
            value: Some(data_packet::Value::RpcRequest(call)),
            ..DataPacket::default()
        };
        let call = Call {
            calls: self,
            id,
            progress,
            limit,
        };
        Ok((call, packet.encode_to_vec()))
    }

    /// Takes a packet of `from` if it is about a call of the services.
    pub(crate) fn take(&self, from: &str, packet: &DataPacket) -> bool {
        use livekit_protocol::rpc_response::Value;
        let (id, progress) = match &packet.value {
            Some(data_packet::Value::RpcAck(ack)) => (&ack.request_id, Progress::Taken),
            Some(data_packet::Value::RpcResponse(response)) => {
                let answer = match &response.value {
                    Some(Value::Payload(payload)) => Ok(payload.clone()),
                    Some(Value::Error(error)) => Err(error.clone()),
                    Some(_) | None => Ok(String::new()),
                };
                (&response.request_id, Progress::Answered(answer))
            }
            _ => return false,
        };
        let calls = self.calls();
        let Some(call) = calls.get(id).filter(|call| call.to == from) else {
            return false;
        };
        // A participant that says more than that is not heard.
        let _ = call.progress.try_send(progress);
        true
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<String, Pending>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Call<'_> {
    /// Waits for the answer. `left` ends when the participant has left.
    pub(crate) async fn answer(
        mut self,
        left: impl Future<Output = ()>,
    ) -> Result<String, ServiceError> {
        let limit = self.limit;
        tokio::select! {
            // The participant may have answered before.
            biased;
            answer = timeout(limit, self.wait()) => match answer {
                Ok(answer) => answer,
                Err(_) => Err(error(RESPONSE_TIMEOUT, "Response timeout", "")),
            },
            () = left => Err(disconnected()),
        }
    }

    async fn wait(&mut self) -> Result<String, ServiceError> {
        let Ok(mut progress) = timeout(ACK_LIMIT, self.progress.recv()).await else {
            return Err(error(CONNECTION_TIMEOUT, "Connection timeout", ""));
        };
        loop {
            match progress {
                Some(Progress::Answered(Ok(payload))) => return Ok(payload),
                Some(Progress::Answered(Err(it))) => {
                    return Err(error(it.code, &it.message, &it.data));
                }
                Some(Progress::Taken) => progress = self.progress.recv().await,
                None => return Err(disconnected()),
            }
        }
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.calls.calls().remove(&self.id);
    }
}

/// The participant is not there any more.
fn disconnected() -> ServiceError {
    error(RECIPIENT_DISCONNECTED, "Recipient disconnected", "")
}

/// Returns an error of a call, in the words of SDKs.
fn error(code: u32, message: &str, data: &str) -> ServiceError {
    let kind = match code {
        1400 | REQUEST_TOO_LARGE => Code::InvalidArgument,
        1401 => Code::NotFound,
        1403 | 1404 => Code::Unimplemented,
        CONNECTION_TIMEOUT | RESPONSE_TIMEOUT => Code::Canceled,
        RECIPIENT_DISCONNECTED => Code::Unavailable,
        _ => Code::Internal,
    };
    let text = match data {
        "" => format!("RpcError {code}: {message}"),
        data => format!("RpcError {code}: {message}: {data}"),
    };
    ServiceError::new(kind, text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

    use std::future::{pending, ready};

    use livekit_protocol::{RpcAck, RpcResponse, rpc_response};
    use tokio::time::Instant;

    use super::*;

    fn request(payload: usize) -> PerformRpcRequest {
        PerformRpcRequest {
            destination_identity: "al".to_owned(),
            method: "m".to_owned(),
            payload: "x".repeat(payload),
            ..PerformRpcRequest::default()
        }
    }

    fn packet(value: data_packet::Value) -> DataPacket {
        DataPacket {
            value: Some(value),
            ..DataPacket::default()
        }
    }

    fn ack(id: &str) -> DataPacket {
        packet(data_packet::Value::RpcAck(RpcAck {
            request_id: id.to_owned(),
        }))
    }

    fn answer(id: &str, value: rpc_response::Value) -> DataPacket {
        packet(data_packet::Value::RpcResponse(RpcResponse {
            request_id: id.to_owned(),
            value: Some(value),
        }))
    }

    #[tokio::test]
    async fn the_called_one_answers_and_nobody_else() {
        let calls = Calls::default();
        let (call, bytes) = calls.begin(&request(1)).unwrap();
        let sent = DataPacket::decode(&*bytes).unwrap();
        let Some(data_packet::Value::RpcRequest(sent)) = sent.value else {
            unreachable!("it is a call")
        };
        assert_eq!((sent.method.as_str(), sent.version), ("m", 1));
        let done = answer(&sent.id, rpc_response::Value::Payload("yes".to_owned()));
        assert!(!calls.take("bob", &done));
        assert!(!calls.take("al", &ack("another")));
        assert!(calls.take("al", &ack(&sent.id)));
        assert!(calls.take("al", &done));
        assert_eq!(call.answer(pending()).await.unwrap(), "yes");
        assert!(calls.calls().is_empty());
        assert!(!calls.take("al", &done));
    }

    #[tokio::test]
    async fn errors_have_the_words_and_codes_of_sdks() {
        let calls = Calls::default();
        let (call, _) = calls.begin(&request(1)).unwrap();
        let fault = rpc_response::Value::Error(RpcError {
            code: 1400,
            message: "Method not supported at destination".to_owned(),
            data: "d".to_owned(),
        });
        assert!(calls.take("al", &answer(&call.id, fault)));
        let error = call.answer(pending()).await.unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        let expected = "RpcError 1400: Method not supported at destination: d";
        assert_eq!(error.to_string(), expected);
        let error = calls.begin(&request(MAX_PAYLOAD + 1)).unwrap_err();
        let expected = "RpcError 1402: Request payload too large";
        assert_eq!(error.to_string(), expected);
    }

    #[tokio::test(start_paused = true)]
    async fn silence_ends_a_call() {
        let calls = Calls::default();
        let begun = Instant::now();
        let (call, _) = calls.begin(&request(1)).unwrap();
        let error = call.answer(pending()).await.unwrap_err();
        assert_eq!(error.to_string(), "RpcError 1501: Connection timeout");
        assert_eq!(begun.elapsed(), ACK_LIMIT);
        let begun = Instant::now();
        let (call, _) = calls.begin(&request(1)).unwrap();
        assert!(calls.take("al", &ack(&call.id)));
        let error = call.answer(pending()).await.unwrap_err();
        assert_eq!(error.to_string(), "RpcError 1502: Response timeout");
        assert_eq!(begun.elapsed(), ANSWER_LIMIT);
        assert!(calls.calls().is_empty());
    }

    #[tokio::test]
    async fn who_leaves_does_not_answer_any_more() {
        let calls = Calls::default();
        let (call, _) = calls.begin(&request(1)).unwrap();
        assert!(calls.take("al", &ack(&call.id)));
        let error = call.answer(ready(())).await.unwrap_err();
        assert_eq!(error.code(), Code::Unavailable);
        assert_eq!(error.to_string(), "RpcError 1503: Recipient disconnected");
        assert!(calls.calls().is_empty());
        let (call, _) = calls.begin(&request(1)).unwrap();
        let done = rpc_response::Value::Payload("yes".to_owned());
        assert!(calls.take("al", &answer(&call.id, done)));
        assert_eq!(call.answer(ready(())).await.unwrap(), "yes");
    }

    #[test]
    fn calls_are_bounded() {
        let calls = Calls::default();
        let begun: Vec<_> = (0..MAX_CALLS)
            .map(|_| calls.begin(&request(1)).unwrap())
            .collect();
        let error = calls.begin(&request(1)).unwrap_err();
        assert_eq!(error.code(), Code::ResourceExhausted);
        drop(begun);
        assert!(calls.begin(&request(1)).is_ok());
    }
}
