//! Events of agents in short form.

use portunus_sip::agent::{AgentEvent, CallId, Cause};

/// Returns an event in short form.
pub fn short(event: &AgentEvent) -> String {
    match event {
        AgentEvent::Registered { expires, .. } => format!("registered {}", expires.as_secs()),
        AgentEvent::RegistrationFailed { code, reason, .. } => {
            format!("registration failed {code} {reason}")
        }
        AgentEvent::Unregistered { .. } => "unregistered".into(),
        AgentEvent::Incoming { .. } => "incoming".into(),
        AgentEvent::Provisional { response, .. } => format!("provisional {}", response.status),
        AgentEvent::Accepted { .. } => "accepted".into(),
        AgentEvent::Acknowledged { request, .. } => {
            format!("acknowledged {}", String::from_utf8_lossy(&request.body))
                .trim_end()
                .to_owned()
        }
        AgentEvent::Ended {
            cause,
            code,
            reason,
            ..
        } => format!("ended {cause:?} {code} {reason}"),
        AgentEvent::Reinvite { request, .. } => {
            format!("reinvite {}", String::from_utf8_lossy(&request.body))
                .trim_end()
                .to_owned()
        }
        AgentEvent::ReinviteCancelled { .. } => "reinvite cancelled".into(),
        AgentEvent::ReinviteAccepted { .. } => "reinvite accepted".into(),
        AgentEvent::ReinviteRejected { code, .. } => format!("reinvite rejected {code}"),
        AgentEvent::Request { request, .. } => {
            format!(
                "{} {}",
                request.method,
                String::from_utf8_lossy(&request.body)
            )
        }
        AgentEvent::Refer { request, .. } => {
            format!("refer {}", request.headers.get("Refer-To").unwrap_or(""))
        }
        AgentEvent::ReferNotify { request, .. } => {
            let state = request.headers.subscription_state().unwrap().unwrap().state;
            format!(
                "refer notify {state} {}",
                String::from_utf8_lossy(&request.body).trim_end()
            )
        }
        AgentEvent::Response { code, reason, .. } => format!("response {code} {reason}"),
        AgentEvent::Subscribed { expires, .. } => format!("subscribed {}", expires.as_secs()),
        AgentEvent::SubscriptionFailed { code, reason, .. } => {
            format!("subscription failed {code} {reason}")
        }
        AgentEvent::Notify { request, .. } => {
            format!("notify {}", String::from_utf8_lossy(&request.body))
        }
        AgentEvent::SubscriptionEnded { reason, .. } => {
            format!("subscription ended {}", reason.as_deref().unwrap_or(""))
                .trim_end()
                .to_owned()
        }
        AgentEvent::Forbidden { address, .. } => format!("forbidden {address}"),
        AgentEvent::Trace { sent, bytes, .. } => {
            let text = String::from_utf8_lossy(bytes);
            format!(
                "{} {}",
                if *sent { "sent" } else { "received" },
                text.lines().next().unwrap_or("")
            )
        }
    }
}

pub fn is_ended(event: &AgentEvent) -> Option<(Cause, u16)> {
    match event {
        AgentEvent::Ended { cause, code, .. } => Some((*cause, *code)),
        _ => None,
    }
}

pub fn is_incoming(event: &AgentEvent) -> Option<CallId> {
    match event {
        AgentEvent::Incoming { call, .. } => Some(*call),
        _ => None,
    }
}

pub fn is_accepted(event: &AgentEvent) -> Option<CallId> {
    match event {
        AgentEvent::Accepted { call, .. } => Some(*call),
        _ => None,
    }
}
