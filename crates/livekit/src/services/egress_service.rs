//! The service `Egress`.

use livekit_protocol as lk;
use livekit_protocol::egress_info::Request;

use super::json::schema;
use super::method::EgressMethod;
use super::room_service::Call;
use super::{ServiceError, Services};

/// A request to the service.
#[derive(Debug, Clone, PartialEq)]
pub enum EgressRequest {
    /// Starts an egress in a room.
    Start {
        /// The room.
        room: String,
        /// What is recorded or streamed.
        request: Box<Request>,
    },
    /// Changes the layout of a room.
    UpdateLayout(lk::UpdateLayoutRequest),
    /// Adds and removes streams.
    UpdateStream(lk::UpdateStreamRequest),
    /// Lists egresses.
    List(lk::ListEgressRequest),
    /// Ends an egress.
    Stop(lk::StopEgressRequest),
}

/// An answer of the service.
#[derive(Debug, Clone, PartialEq)]
pub enum EgressAnswer {
    /// The egress.
    Info(Box<lk::EgressInfo>),
    /// A list of egresses.
    List(Vec<lk::EgressInfo>),
}

impl Call<'_> {
    /// Carries out a call of the service.
    pub(super) async fn egress<S: Services>(
        &self,
        method: EgressMethod,
        services: &S,
    ) -> Result<Vec<u8>, ServiceError> {
        self.require(|video| video.room_record)?;
        let request = self.egress_request(method)?;
        match services.egress(request).await? {
            EgressAnswer::Info(info) => self.format.write(&*info, &schema::EGRESS),
            EgressAnswer::List(items) => {
                let answer = lk::ListEgressResponse {
                    items,
                    next_page_token: None,
                };
                self.format.write(&answer, &schema::LIST_EGRESS)
            }
        }
    }

    fn egress_request(&self, method: EgressMethod) -> Result<EgressRequest, ServiceError> {
        let (format, body) = (self.format, self.body);
        let start = |room: &str, request: Request| EgressRequest::Start {
            room: room.to_owned(),
            request: Box::new(request),
        };
        Ok(match method {
            EgressMethod::StartRoomComposite => {
                let request: lk::RoomCompositeEgressRequest = format.read(body)?;
                start(&request.room_name.clone(), Request::RoomComposite(request))
            }
            EgressMethod::StartParticipant => {
                let request: lk::ParticipantEgressRequest = format.read(body)?;
                start(&request.room_name.clone(), Request::Participant(request))
            }
            EgressMethod::StartTrackComposite => {
                let request: lk::TrackCompositeEgressRequest = format.read(body)?;
                start(&request.room_name.clone(), Request::TrackComposite(request))
            }
            EgressMethod::StartTrack => {
                let request: lk::TrackEgressRequest = format.read(body)?;
                start(&request.room_name.clone(), Request::Track(request))
            }
            EgressMethod::UpdateLayout => EgressRequest::UpdateLayout(format.read(body)?),
            EgressMethod::UpdateStream => EgressRequest::UpdateStream(format.read(body)?),
            EgressMethod::List => EgressRequest::List(format.read(body)?),
            EgressMethod::Stop => EgressRequest::Stop(format.read(body)?),
        })
    }
}
