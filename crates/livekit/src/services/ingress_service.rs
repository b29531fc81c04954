//! The service `Ingress`.

use livekit_protocol as lk;

use super::json::schema;
use super::method::IngressMethod;
use super::room_service::Call;
use super::{ServiceError, Services};

/// A request to the service.
#[derive(Debug, Clone, PartialEq)]
pub enum IngressRequest {
    /// Makes an ingress.
    Create(Box<lk::CreateIngressRequest>),
    /// Changes an ingress.
    Update(Box<lk::UpdateIngressRequest>),
    /// Lists ingresses.
    List(lk::ListIngressRequest),
    /// Removes an ingress.
    Delete(lk::DeleteIngressRequest),
}

/// An answer of the service.
#[derive(Debug, Clone, PartialEq)]
pub enum IngressAnswer {
    /// The ingress.
    Info(Box<lk::IngressInfo>),
    /// A list of ingresses.
    List(Vec<lk::IngressInfo>),
}

impl Call<'_> {
    /// Carries out a call of the service.
    pub(super) async fn ingress<S: Services>(
        &self,
        method: IngressMethod,
        services: &S,
    ) -> Result<Vec<u8>, ServiceError> {
        self.require(|video| video.ingress_admin)?;
        let (format, body) = (self.format, self.body);
        let request = match method {
            IngressMethod::Create => IngressRequest::Create(Box::new(format.read(body)?)),
            IngressMethod::Update => IngressRequest::Update(Box::new(format.read(body)?)),
            IngressMethod::List => IngressRequest::List(format.read(body)?),
            IngressMethod::Delete => IngressRequest::Delete(format.read(body)?),
        };
        match services.ingress(request).await? {
            IngressAnswer::Info(info) => format.write(&*info, &schema::INGRESS),
            IngressAnswer::List(items) => {
                let answer = lk::ListIngressResponse {
                    items,
                    next_page_token: None,
                };
                format.write(&answer, &schema::LIST_INGRESS)
            }
        }
    }
}
