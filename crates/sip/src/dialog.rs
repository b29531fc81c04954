//! Dialogs (RFC 3261 section 12): the state that two user agents share over several requests.

use crate::message::{CSeq, Method, NameAddr, Request, Response, Uri};

/// The id of a dialog (RFC 3261 section 12), as Replaces wants it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DialogId {
    /// Call-ID.
    pub call_id: String,
    /// Our tag.
    pub local_tag: String,
    /// The peer's tag. Empty if it has given none (RFC 2543), or none yet.
    pub remote_tag: String,
}

/// A message cannot begin a dialog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DialogError {
    /// A header field is missing or malformed.
    #[error("{0} is missing or malformed")]
    Header(&'static str),
}

/// A request has a lower CSeq than an earlier one. It gets 500 (RFC 3261 section 12.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("request out of order")]
pub struct OutOfOrder;

/// One side of a dialog.
#[derive(Debug, Clone)]
pub struct Dialog {
    id: DialogId,
    /// From of our requests, as written first.
    local: String,
    /// To of our requests.
    remote: String,
    local_cseq: u32,
    remote_cseq: Option<u32>,
    routes: Vec<NameAddr>,
    target: Uri,
    confirmed: bool,
}

impl Dialog {
    /// Makes the dialog of the side that has sent the request, from a response: a provisional one
    /// with a tag, or 2xx.
    ///
    /// # Errors
    /// From, To or CSeq cannot be used.
    pub fn of_response(request: &Request, response: &Response) -> Result<Self, DialogError> {
        let (local, local_tag) =
            party(request.headers.get("From"), request.headers.from(), "From")?;
        let (remote, remote_tag) = party(response.headers.get("To"), response.headers.to(), "To")?;
        let call_id = request
            .headers
            .call_id()
            .ok_or(DialogError::Header("Call-ID"))?
            .to_owned();
        let mut dialog = Self {
            id: DialogId {
                call_id,
                local_tag,
                remote_tag,
            },
            local,
            remote,
            local_cseq: sequence(request)?.number,
            remote_cseq: None,
            routes: Vec::new(),
            target: request.uri.clone(),
            confirmed: false,
        };
        dialog.learn(response);
        Ok(dialog)
    }

    /// Makes the dialog of the side that responds to the request with `local_tag`; or that of a
    /// NOTIFY which comes before the response to its SUBSCRIBE, and has the tag of that.
    ///
    /// # Errors
    /// From, To, CSeq, Contact or Record-Route cannot be used.
    pub fn of_request(request: &Request, local_tag: &str) -> Result<Self, DialogError> {
        let (remote, remote_tag) =
            party(request.headers.get("From"), request.headers.from(), "From")?;
        let (mut local, tag) = party(request.headers.get("To"), request.headers.to(), "To")?;
        if tag.is_empty() {
            local = format!("{local};tag={local_tag}");
        }
        let call_id = request
            .headers
            .call_id()
            .ok_or(DialogError::Header("Call-ID"))?
            .to_owned();
        let contact = request.headers.contact().ok().flatten();
        // A peer without a tag may know RFC 2543 only, where Contact is optional.
        let target = match contact {
            Some(contact) => contact.uri,
            None if remote_tag.is_empty() => {
                request
                    .headers
                    .from()
                    .ok()
                    .flatten()
                    .ok_or(DialogError::Header("From"))?
                    .uri
            }
            None => return Err(DialogError::Header("Contact")),
        };
        Ok(Self {
            id: DialogId {
                call_id,
                local_tag: local_tag.to_owned(),
                remote_tag,
            },
            local,
            remote,
            local_cseq: 0,
            remote_cseq: Some(sequence(request)?.number),
            routes: request
                .headers
                .record_routes()
                .map_err(|_| DialogError::Header("Record-Route"))?,
            target,
            confirmed: false,
        })
    }

    /// Returns the id.
    #[must_use]
    pub fn id(&self) -> &DialogId {
        &self.id
    }

    /// Whether a 2xx was sent or received.
    #[must_use]
    pub fn is_confirmed(&self) -> bool {
        self.confirmed
    }

    /// Whether our requests pass proxies.
    #[must_use]
    pub fn has_route(&self) -> bool {
        !self.routes.is_empty()
    }

    /// Returns the peer's Contact: the Request-URI of our requests.
    #[must_use]
    pub fn target(&self) -> &Uri {
        &self.target
    }

    /// Whether a message from the peer with this Call-ID and tag belongs to the dialog. A peer
    /// without a tag may give one later.
    #[must_use]
    pub fn fits(&self, call_id: &str, remote_tag: &str) -> bool {
        self.id.call_id == call_id
            && (self.id.remote_tag == remote_tag || self.id.remote_tag.is_empty())
    }

    /// Takes route set and remote target from a response to the request that began the dialog. The
    /// route set of a 2xx is final (RFC 3261 section 13.2.2.4).
    pub fn learn(&mut self, response: &Response) {
        if self.confirmed {
            return;
        }
        self.confirmed = response.status.is_success();
        if let Ok(mut routes) = response.headers.record_routes() {
            routes.reverse();
            self.routes = routes;
        }
        self.retarget(response.headers.contact().ok().flatten());
    }

    /// Notes our 2xx.
    pub fn confirm(&mut self) {
        self.confirmed = true;
    }

    /// Sets the remote target of a target refresh request or its response (RFC 3261 section 12.2).
    pub fn retarget(&mut self, contact: Option<NameAddr>) {
        if let Some(contact) = contact.filter(|contact| contact.uri.as_sip().is_some()) {
            self.target = contact.uri;
        }
    }

    /// Checks the order of a request of the peer. ACK and CANCEL have no number of their own.
    ///
    /// # Errors
    /// A later one came before.
    pub fn order(&mut self, request: &Request) -> Result<(), OutOfOrder> {
        if matches!(request.method, Method::Ack | Method::Cancel) {
            return Ok(());
        }
        let number = sequence(request).map_err(|_| OutOfOrder)?.number;
        if self.remote_cseq.is_some_and(|last| number < last) {
            return Err(OutOfOrder);
        }
        self.remote_cseq = Some(number);
        Ok(())
    }

    /// Returns the number for our next request.
    pub fn next_cseq(&mut self) -> u32 {
        self.local_cseq = self.local_cseq.wrapping_add(1) & 0x7fff_ffff;
        self.local_cseq
    }

    /// Continues from a number that was used before there was a dialog.
    pub fn count_from(&mut self, number: u32) {
        self.local_cseq = self.local_cseq.max(number);
    }

    /// Makes a request with the next number. Via and Contact are still to be added.
    pub fn request(&mut self, method: Method) -> Request {
        let number = self.next_cseq();
        self.numbered(method, number)
    }

    /// Makes the ACK to the 2xx of the INVITE with that number.
    #[must_use]
    pub fn ack(&self, number: u32) -> Request {
        self.numbered(Method::Ack, number)
    }

    fn numbered(&self, method: Method, number: u32) -> Request {
        let mut uri = self.target.clone();
        let mut routes: Vec<String> = self.routes.iter().map(ToString::to_string).collect();
        // A first hop without loose routing wants its own URI in the Request-URI (RFC 3261 section
        // 12.2.1.1).
        if let Some(first) = self.routes.first().filter(|route| !is_loose(&route.uri)) {
            routes.remove(0);
            routes.push(format!("<{uri}>"));
            uri = first.uri.clone();
        }
        let mut request = Request::new(method, uri);
        for route in routes {
            request.headers.push("Route", route);
        }
        request.headers.push("Max-Forwards", 70);
        request.headers.push("From", &self.local);
        request.headers.push("To", &self.remote);
        request.headers.push("Call-ID", &self.id.call_id);
        request.headers.push(
            "CSeq",
            format_args!("{number} {}", request.method.as_str().to_owned()),
        );
        request
    }
}

/// Returns the URI of the next hop of a request (RFC 3261 section 8.1.2): the first Route if that
/// is a loose router.
#[must_use]
pub fn next_hop(request: &Request) -> Uri {
    match request
        .headers
        .routes()
        .ok()
        .and_then(|routes| routes.into_iter().next())
    {
        Some(route) if is_loose(&route.uri) => route.uri,
        _ => request.uri.clone(),
    }
}

fn is_loose(uri: &Uri) -> bool {
    uri.as_sip().is_some_and(|uri| uri.params.has("lr"))
}

/// Returns a From or To as text, and its tag.
fn party<E>(
    text: Option<&str>,
    parsed: Result<Option<NameAddr>, E>,
    name: &'static str,
) -> Result<(String, String), DialogError> {
    match (text, parsed) {
        (Some(text), Ok(Some(party))) => {
            Ok((text.to_owned(), party.tag().unwrap_or_default().to_owned()))
        }
        _ => Err(DialogError::Header(name)),
    }
}

fn sequence(request: &Request) -> Result<CSeq, DialogError> {
    request
        .headers
        .cseq()
        .ok()
        .flatten()
        .ok_or(DialogError::Header("CSeq"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

    use super::*;
    use crate::message::{Message, StatusCode};

    fn invite(more: &str) -> Request {
        let text = format!(
            "INVITE sip:b@x.test SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.2;branch=z9hG4bK1\r\nMax-Forwards: 70\r\n\
             From: \"A\" <sip:a@x.test>;tag=a\r\nTo: <sip:b@x.test>\r\nCall-ID: c1\r\nCSeq: 7 INVITE\r\n\
             Contact: <sip:a@192.0.2.2>\r\n{more}\r\n"
        );
        match Message::parse(text.as_bytes()).unwrap() {
            Message::Request(request) => request,
            Message::Response(_) => panic!("a response"),
        }
    }

    fn answer(code: u16, tag: &str, routes: &[&str]) -> Response {
        let mut response = Response::to(&invite(""), StatusCode::new(code).unwrap());
        response.headers.set_to_tag(tag);
        for route in routes {
            response.headers.push("Record-Route", route);
        }
        response.headers.push("Contact", "<sip:b@192.0.2.9:5070>");
        response
    }

    fn routes(request: &Request) -> Vec<&str> {
        request.headers.all("Route").collect()
    }

    #[test]
    fn the_caller_takes_record_route_backwards() {
        let mut dialog = Dialog::of_response(
            &invite(""),
            &answer(180, "b", &["<sip:p1;lr>, <sip:p2;lr>"]),
        )
        .unwrap();
        assert!(!dialog.is_confirmed());
        let bye = dialog.request(Method::Bye);
        assert_eq!(bye.uri.to_string(), "sip:b@192.0.2.9:5070");
        assert_eq!(routes(&bye), ["<sip:p2;lr>", "<sip:p1;lr>"]);
        assert_eq!(bye.headers.get("CSeq"), Some("8 BYE"));
        assert_eq!(bye.headers.get("From"), Some("\"A\" <sip:a@x.test>;tag=a"));
        assert_eq!(bye.headers.get("To"), Some("<sip:b@x.test>;tag=b"));
        assert_eq!(next_hop(&bye).to_string(), "sip:p2;lr");
        assert_eq!(dialog.ack(7).headers.get("CSeq"), Some("7 ACK"));
    }

    #[test]
    fn the_2xx_is_the_last_word_on_the_route() {
        let mut dialog =
            Dialog::of_response(&invite(""), &answer(180, "b", &["<sip:p1;lr>"])).unwrap();
        dialog.learn(&answer(200, "b", &["<sip:p3;lr>"]));
        dialog.learn(&answer(200, "b", &[]));
        assert_eq!(routes(&dialog.request(Method::Bye)), ["<sip:p3;lr>"]);
    }

    #[test]
    fn a_strict_router_is_put_into_the_request_uri() {
        let record = "Record-Route: <sip:p1>\r\nRecord-Route: <sip:p2;lr>\r\n";
        let mut dialog = Dialog::of_request(&invite(record), "us").unwrap();
        let bye = dialog.request(Method::Bye);
        assert_eq!(bye.uri.to_string(), "sip:p1");
        assert_eq!(routes(&bye), ["<sip:p2;lr>", "<sip:a@192.0.2.2>"]);
        assert_eq!(bye.headers.get("From"), Some("<sip:b@x.test>;tag=us"));
        assert_eq!(bye.headers.get("CSeq"), Some("1 BYE"));
    }

    #[test]
    fn requests_out_of_order_are_refused() {
        let mut dialog = Dialog::of_request(&invite(""), "us").unwrap();
        let with = |number: u32, method: &str| {
            let mut request = invite("");
            request.method = method.parse().unwrap();
            request.headers.set("CSeq", format!("{number} {method}"));
            request
        };
        assert_eq!(dialog.order(&with(9, "INFO")), Ok(()));
        assert_eq!(dialog.order(&with(8, "BYE")), Err(OutOfOrder));
        assert_eq!(dialog.order(&with(7, "ACK")), Ok(()));
        assert_eq!(dialog.order(&with(10, "BYE")), Ok(()));
    }

    #[test]
    fn the_target_is_refreshed_by_what_can_be_reached() {
        let mut dialog = Dialog::of_request(&invite(""), "us").unwrap();
        dialog.retarget("<sip:a@192.0.2.77>".parse().ok());
        dialog.retarget("<tel:+1>".parse().ok());
        dialog.retarget(None);
        assert_eq!(dialog.target().to_string(), "sip:a@192.0.2.77");
        assert!(dialog.fits("c1", "a"));
        assert!(!dialog.fits("c1", "b") && !dialog.fits("c2", "a"));
    }

    #[test]
    fn a_call_without_a_contact_makes_no_dialog() {
        let mut request = invite("");
        request.headers.remove("Contact");
        assert_eq!(
            Dialog::of_request(&request, "us").unwrap_err(),
            DialogError::Header("Contact")
        );
    }
}
