//! Status codes and their usual phrases.

use std::fmt;

/// A status code: 100 to 699.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StatusCode(u16);

macro_rules! statuses {
    ($($name:ident = $code:literal $reason:literal,)*) => {
        #[expect(missing_docs, reason = "the phrases say what they are")]
        impl StatusCode {
            $(pub const $name: Self = Self($code);)*

            /// Returns the usual phrase, or that of the class for codes without one.
            #[must_use]
            pub fn reason(self) -> &'static str {
                match self.0 {
                    $($code => $reason,)*
                    100..200 => "Progress",
                    200..300 => "Success",
                    300..400 => "Redirection",
                    400..500 => "Request Failure",
                    500..600 => "Server Failure",
                    _ => "Global Failure",
                }
            }
        }
    };
}

statuses! {
    TRYING = 100 "Trying",
    RINGING = 180 "Ringing",
    FORWARDED = 181 "Call Is Being Forwarded",
    QUEUED = 182 "Queued",
    SESSION_PROGRESS = 183 "Session Progress",
    EARLY_DIALOG_TERMINATED = 199 "Early Dialog Terminated",
    OK = 200 "OK",
    ACCEPTED = 202 "Accepted",
    NO_NOTIFICATION = 204 "No Notification",
    MULTIPLE_CHOICES = 300 "Multiple Choices",
    MOVED_PERMANENTLY = 301 "Moved Permanently",
    MOVED_TEMPORARILY = 302 "Moved Temporarily",
    USE_PROXY = 305 "Use Proxy",
    ALTERNATIVE_SERVICE = 380 "Alternative Service",
    BAD_REQUEST = 400 "Bad Request",
    UNAUTHORIZED = 401 "Unauthorized",
    PAYMENT_REQUIRED = 402 "Payment Required",
    FORBIDDEN = 403 "Forbidden",
    NOT_FOUND = 404 "Not Found",
    METHOD_NOT_ALLOWED = 405 "Method Not Allowed",
    NOT_ACCEPTABLE = 406 "Not Acceptable",
    PROXY_AUTHENTICATION_REQUIRED = 407 "Proxy Authentication Required",
    REQUEST_TIMEOUT = 408 "Request Timeout",
    GONE = 410 "Gone",
    CONDITIONAL_REQUEST_FAILED = 412 "Conditional Request Failed",
    REQUEST_ENTITY_TOO_LARGE = 413 "Request Entity Too Large",
    REQUEST_URI_TOO_LONG = 414 "Request-URI Too Long",
    UNSUPPORTED_MEDIA_TYPE = 415 "Unsupported Media Type",
    UNSUPPORTED_URI_SCHEME = 416 "Unsupported URI Scheme",
    BAD_EXTENSION = 420 "Bad Extension",
    EXTENSION_REQUIRED = 421 "Extension Required",
    SESSION_INTERVAL_TOO_SMALL = 422 "Session Interval Too Small",
    INTERVAL_TOO_BRIEF = 423 "Interval Too Brief",
    FLOW_FAILED = 430 "Flow Failed",
    FIRST_HOP_LACKS_OUTBOUND_SUPPORT = 439 "First Hop Lacks Outbound Support",
    TEMPORARILY_UNAVAILABLE = 480 "Temporarily Unavailable",
    CALL_DOES_NOT_EXIST = 481 "Call/Transaction Does Not Exist",
    LOOP_DETECTED = 482 "Loop Detected",
    TOO_MANY_HOPS = 483 "Too Many Hops",
    ADDRESS_INCOMPLETE = 484 "Address Incomplete",
    AMBIGUOUS = 485 "Ambiguous",
    BUSY_HERE = 486 "Busy Here",
    REQUEST_TERMINATED = 487 "Request Terminated",
    NOT_ACCEPTABLE_HERE = 488 "Not Acceptable Here",
    BAD_EVENT = 489 "Bad Event",
    REQUEST_PENDING = 491 "Request Pending",
    UNDECIPHERABLE = 493 "Undecipherable",
    SECURITY_AGREEMENT_REQUIRED = 494 "Security Agreement Required",
    SERVER_INTERNAL_ERROR = 500 "Server Internal Error",
    NOT_IMPLEMENTED = 501 "Not Implemented",
    BAD_GATEWAY = 502 "Bad Gateway",
    SERVICE_UNAVAILABLE = 503 "Service Unavailable",
    SERVER_TIMEOUT = 504 "Server Time-out",
    VERSION_NOT_SUPPORTED = 505 "Version Not Supported",
    MESSAGE_TOO_LARGE = 513 "Message Too Large",
    BUSY_EVERYWHERE = 600 "Busy Everywhere",
    DECLINE = 603 "Decline",
    DOES_NOT_EXIST_ANYWHERE = 604 "Does Not Exist Anywhere",
    NOT_ACCEPTABLE_ANYWHERE = 606 "Not Acceptable",
}

impl StatusCode {
    /// Returns the status of a code from 100 to 699.
    #[must_use]
    pub fn new(code: u16) -> Option<Self> {
        (100..700).contains(&code).then_some(Self(code))
    }

    /// Returns the number.
    #[must_use]
    pub fn code(self) -> u16 {
        self.0
    }

    /// Whether it is 1xx.
    #[must_use]
    pub fn is_provisional(self) -> bool {
        self.0 < 200
    }

    /// Whether it ends the transaction: 2xx to 6xx.
    #[must_use]
    pub fn is_final(self) -> bool {
        self.0 >= 200
    }

    /// Whether it is 2xx.
    #[must_use]
    pub fn is_success(self) -> bool {
        (200..300).contains(&self.0)
    }

    /// Whether it is 3xx.
    #[must_use]
    pub fn is_redirection(self) -> bool {
        (300..400).contains(&self.0)
    }
}

impl fmt::Display for StatusCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
