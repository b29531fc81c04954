//! Parses the `jsep` member of a message.

use portunus_rtp::Mid;
use serde_json::{Map, Value};

use crate::{ApiError, FieldError, Fields, JsepKind, RidOrder, Svc};

/// A `jsep` with members of the right types.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RawJsep<'a> {
    pub(crate) kind: JsepKind,
    pub(crate) sdp: &'a str,
    pub(crate) e2ee: bool,
    pub(crate) rid_order: Option<RidOrder>,
    svc: Vec<RawSvc<'a>>,
}

#[derive(Debug, Clone, PartialEq)]
struct RawSvc<'a> {
    mid: Option<&'a str>,
    index: Option<u64>,
    mode: &'a str,
}

impl<'a> RawJsep<'a> {
    /// Reads the `jsep` of a message, if there is one.
    pub(crate) fn read(message: &'a Map<String, Value>) -> Result<Option<Self>, ApiError> {
        let jsep = match message.get("jsep") {
            None => return Ok(None),
            Some(Value::Object(jsep)) => jsep,
            Some(_) => return Err(ApiError::InvalidJsonObject("Invalid jsep object")),
        };
        let fields = Fields(jsep);
        let kind = fields.required_string("type").map_err(in_jsep)?;
        let sdp = fields.required_string("sdp").map_err(in_jsep)?;
        // Trickling needs no announcement, so only the type is checked.
        fields.boolean("trickle").map_err(in_jsep)?;
        let rid_order = fields.string("rid_order").map_err(in_jsep)?;
        fields.boolean("force_relay").map_err(in_jsep)?;
        let e2ee = fields.boolean("e2ee").map_err(in_jsep)?;
        let kind = match kind.to_ascii_lowercase().as_str() {
            "offer" => JsepKind::Offer,
            "answer" => JsepKind::Answer,
            _ => return Err(ApiError::JsepUnknownType(kind.to_owned())),
        };
        Ok(Some(RawJsep {
            kind,
            sdp,
            e2ee: e2ee.unwrap_or(false),
            rid_order: rid_order.and_then(RidOrder::from_name),
            svc: jsep.get("svc").and_then(read_svc).unwrap_or_default(),
        }))
    }

    /// Returns the SVC entries, with m-lines instead of indices.
    pub(crate) fn svc(&self, mids: &[Mid]) -> Vec<Svc> {
        let entry = |raw: &RawSvc<'_>| {
            let by_index = || mids.get(usize::try_from(raw.index?).ok()?).copied();
            let mid = raw.mid.and_then(Mid::new).or_else(by_index)?;
            Some(Svc {
                mid,
                mode: raw.mode.to_owned(),
            })
        };
        self.svc.iter().filter_map(entry).collect()
    }
}

/// Returns `None` if any entry is wrong: then the whole list is ignored.
fn read_svc(svc: &Value) -> Option<Vec<RawSvc<'_>>> {
    svc.as_array()?.iter().map(RawSvc::read).collect()
}

impl<'a> RawSvc<'a> {
    fn read(value: &'a Value) -> Option<Self> {
        let entry = value.as_object()?;
        let mid = entry
            .get("mid")
            .map(|mid| mid.as_str().ok_or(()))
            .transpose()
            .ok()?;
        let index = entry
            .get("mindex")
            .map(|index| index.as_u64().ok_or(()))
            .transpose()
            .ok()?;
        let mode = entry.get("svc")?.as_str()?;
        (mid.is_some() || index.is_some()).then_some(RawSvc { mid, index, mode })
    }
}

fn in_jsep(error: FieldError) -> ApiError {
    match error {
        FieldError::Missing(name) => {
            ApiError::MissingElement(format!("JSEP error: missing mandatory element ({name})"))
        }
        FieldError::Type { name, wanted } => ApiError::InvalidElement(format!(
            "JSEP error: invalid element type ({name} should be {wanted})"
        )),
        FieldError::Value { .. } => error.into(),
    }
}
