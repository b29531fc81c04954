//! Real browsers: Chromium by its DevTools protocol, and Firefox by WebDriver BiDi.
//!
//! Both are JSON over a WebSocket that the browser itself serves, so no driver program is needed.

mod channel;
mod chromium;
mod error;
mod firefox;
mod page;
mod program;
mod report;

use std::path::PathBuf;

use clap::ValueEnum;

pub(crate) use error::BrowserError;
pub(crate) use page::Page;
pub(crate) use report::{PageReport, PageState};

/// A kind of browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Chromium, Google Chrome
    Chromium,
    /// Mozilla Firefox
    Firefox,
}

/// A running browser with its own profile, which ends with this value.
#[derive(Debug)]
pub(crate) enum Browser {
    Chromium(chromium::Chromium),
    Firefox(firefox::Firefox),
}

/// A tab with cookies and storage of its own.
#[derive(Debug, Clone)]
pub(crate) enum Tab {
    Chromium(chromium::Tab),
    Firefox(firefox::Tab),
}

impl Kind {
    /// Returns its name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Chromium => "chromium",
            Self::Firefox => "firefox",
        }
    }

    /// Returns the names of its programs, in the order in which they are searched.
    const fn programs(self) -> &'static [&'static str] {
        match self {
            Self::Chromium => &["chromium", "chromium-browser", "google-chrome", "chrome"],
            Self::Firefox => &["firefox", "firefox-esr"],
        }
    }

    /// Returns the first of its programs that is in `PATH`.
    pub(crate) fn find(self) -> Option<PathBuf> {
        self.programs()
            .iter()
            .find_map(|name| program::in_path(name))
    }
}

impl Browser {
    /// Starts a browser without a window.
    pub(crate) async fn start(kind: Kind, program: PathBuf) -> Result<Self, BrowserError> {
        Ok(match kind {
            Kind::Chromium => Self::Chromium(chromium::Chromium::start(program).await?),
            Kind::Firefox => Self::Firefox(firefox::Firefox::start(program).await?),
        })
    }

    /// Returns its name and version.
    pub(crate) fn version(&self) -> &str {
        match self {
            Self::Chromium(it) => &it.version,
            Self::Firefox(it) => &it.version,
        }
    }

    /// Opens a tab at this URL, and waits until it is loaded.
    pub(crate) async fn open(&self, url: &str) -> Result<Tab, BrowserError> {
        Ok(match self {
            Self::Chromium(it) => Tab::Chromium(it.open(url).await?),
            Self::Firefox(it) => Tab::Firefox(it.open(url).await?),
        })
    }
}

impl Tab {
    /// Evaluates an expression whose value is a string, or a promise of one.
    pub(crate) async fn evaluate(&self, expression: &str) -> Result<String, BrowserError> {
        match self {
            Self::Chromium(it) => it.evaluate(expression).await,
            Self::Firefox(it) => it.evaluate(expression).await,
        }
    }
}
