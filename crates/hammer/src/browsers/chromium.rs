//! Chromium by its DevTools protocol.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use super::BrowserError;
use super::channel::Channel;
use super::program::Program;

/// Fake devices without questions, and tabs in the back that work as the one in front.
const ARGUMENTS: [&str; 18] = [
    "--headless=new",
    "--no-proxy-server",
    "--remote-debugging-port=0",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-component-update",
    "--disable-background-networking",
    "--disable-sync",
    "--use-fake-device-for-media-stream",
    "--use-fake-ui-for-media-stream",
    "--autoplay-policy=no-user-gesture-required",
    "--allow-loopback-in-peer-connection",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
];

/// The file of the profile with the port and path of its WebSocket.
const PORT_FILE: &str = "DevToolsActivePort";
/// The interval of looking whether a page is loaded.
const LOOK: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(crate) struct Chromium {
    channel: Channel,
    pub(super) version: String,
    _program: Arc<Program>,
}

#[derive(Debug, Clone)]
pub(crate) struct Tab {
    channel: Channel,
    session: String,
}

impl Chromium {
    pub(super) async fn start(path: PathBuf) -> Result<Self, BrowserError> {
        let mut program = Program::start(path, |profile| {
            let mut arguments: Vec<String> = ARGUMENTS.map(str::to_owned).into();
            arguments.push(format!("--user-data-dir={}", profile.display()));
            if is_root() {
                arguments.push("--no-sandbox".to_owned());
            }
            Ok(arguments)
        })?;
        let (port, path) = program.ready(PORT_FILE, port_and_path).await?;
        let channel = Channel::open(port, &path).await?;
        let version = channel.call("Browser.getVersion", json!({}), None).await?;
        let version = version.get("product").and_then(Value::as_str);
        Ok(Self {
            version: version
                .unwrap_or("Chromium")
                .replace("HeadlessChrome", "Chromium"),
            channel,
            _program: Arc::new(program),
        })
    }

    pub(super) async fn open(&self, url: &str) -> Result<Tab, BrowserError> {
        let create = "Target.createBrowserContext";
        let context = self.channel.call(create, json!({}), None).await?;
        let context = text(&context, create, "browserContextId")?;
        let create = "Target.createTarget";
        let params = json!({ "url": url, "browserContextId": context });
        let target = self.channel.call(create, params, None).await?;
        let target = text(&target, create, "targetId")?;
        let attach = "Target.attachToTarget";
        let params = json!({ "targetId": target, "flatten": true });
        let session = self.channel.call(attach, params, None).await?;
        let tab = Tab {
            channel: self.channel.clone(),
            session: text(&session, attach, "sessionId")?,
        };
        while tab.evaluate("String(typeof participant)").await? != "object" {
            sleep(LOOK).await;
        }
        Ok(tab)
    }
}

impl Tab {
    pub(super) async fn evaluate(&self, expression: &str) -> Result<String, BrowserError> {
        let method = "Runtime.evaluate";
        let params =
            json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let result = self
            .channel
            .call(method, params, Some(&self.session))
            .await?;
        let value = result.pointer("/result/value").and_then(Value::as_str);
        value.map(str::to_owned).ok_or_else(|| {
            let thrown = result.pointer("/exceptionDetails/exception/description");
            match thrown.and_then(Value::as_str) {
                Some(reason) => BrowserError::Refused {
                    method: method.to_owned(),
                    reason: reason.to_owned(),
                },
                None => BrowserError::Malformed {
                    method: method.to_owned(),
                    missing: "string",
                },
            }
        })
    }
}

fn text(value: &Value, method: &str, missing: &'static str) -> Result<String, BrowserError> {
    let text = value.get(missing).and_then(Value::as_str);
    text.map(str::to_owned)
        .ok_or_else(|| BrowserError::Malformed {
            method: method.to_owned(),
            missing,
        })
}

/// Chromium's sandbox does not start as root.
fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// Reads the file, which has two lines.
fn port_and_path(text: &str) -> Option<(u16, String)> {
    let (port, path) = text.split_once('\n')?;
    let path = path.trim();
    let port = port.trim().parse().ok()?;
    path.starts_with('/').then(|| (port, path.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_known_once_the_file_is_whole() {
        let whole = "41307\n/devtools/browser/6cd9";
        let expected = Some((41_307, "/devtools/browser/6cd9".to_owned()));
        assert_eq!(port_and_path(whole), expected);
        for part in ["", "4130", "41307\n"] {
            assert_eq!(port_and_path(part), None, "{part}");
        }
    }
}
