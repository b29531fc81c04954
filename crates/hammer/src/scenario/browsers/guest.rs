//! One browser's participant.

use std::sync::Arc;

use serde_json::Value;
use tokio::task::JoinHandle;
use tokio::time::{Duration, timeout};

use crate::browsers::{Browser, BrowserError, PageReport, PageState, Tab};
use crate::record::{Attempt, State};

/// The longest wait for a page's report. A later one is of no use for this second.
const REPORT: Duration = Duration::from_secs(3);

/// A participant with its tab.
#[derive(Debug)]
pub(super) struct Guest {
    pub(super) attempt: Attempt,
    opening: Option<JoinHandle<Result<Tab, BrowserError>>>,
    tab: Option<Tab>,
    pub(super) report: PageReport,
    /// Keeps its browser.
    _browser: Arc<Browser>,
}

/// Where a participant goes.
pub(super) struct Invitation {
    /// The page's URL.
    pub(super) url: String,
    /// The argument of the page's `start`.
    pub(super) given: Value,
}

impl Guest {
    /// Opens a tab.
    pub(super) fn come(attempt: Attempt, browser: Arc<Browser>, invitation: Invitation) -> Self {
        let opener = Arc::clone(&browser);
        let opening = tokio::spawn(async move {
            let tab = opener.open(&invitation.url).await?;
            let call = format!("participant.start({})", invitation.given);
            tab.evaluate(&call).await?;
            Ok(tab)
        });
        Self {
            attempt,
            opening: Some(opening),
            tab: None,
            report: PageReport::default(),
            _browser: browser,
        }
    }

    /// Returns whether it is connected or has failed.
    pub(super) fn is_settled(&self) -> bool {
        matches!(self.attempt.state(), State::Connected | State::Failed)
    }

    /// Returns whether its media flows.
    pub(super) fn is_connected(&self) -> bool {
        self.attempt.state() == State::Connected
    }

    /// Asks its page.
    pub(super) async fn look(&mut self, at_s: f64, patience: f64) {
        if self.attempt.state() == State::Failed {
            return;
        }
        if let Err(reason) = self.ask(at_s).await {
            self.fail(reason, at_s);
        }
        let begun = self.attempt.states.first().map_or(0.0, |(_, at_s)| *at_s);
        if !self.is_settled() && at_s - begun > patience {
            self.fail(format!("not connected after {patience} s"), at_s);
        }
    }

    fn fail(&mut self, reason: String, at_s: f64) {
        self.attempt.enter(State::Failed, at_s);
        self.attempt.failure.get_or_insert(reason);
    }

    async fn ask(&mut self, at_s: f64) -> Result<(), String> {
        if self.opening.as_ref().is_some_and(JoinHandle::is_finished)
            && let Some(opening) = self.opening.take()
        {
            let tab = opening.await.map_err(|error| error.to_string())?;
            self.tab = Some(tab.map_err(|error| error.to_string())?);
            self.attempt.enter(State::Connecting, at_s);
        }
        let Some(tab) = &self.tab else {
            return Ok(());
        };
        // A browser that is too busy to answer is asked again.
        let Ok(answer) = timeout(REPORT, tab.evaluate("participant.report()")).await else {
            return Ok(());
        };
        let text = answer.map_err(|error| error.to_string())?;
        let report: PageReport = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        match report.state {
            PageState::Connecting => {}
            PageState::Connected => self.attempt.enter(State::Connected, at_s),
            PageState::Failed => return Err(report.failure.unwrap_or_default()),
        }
        self.report = report;
        Ok(())
    }
}
