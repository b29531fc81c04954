//! Firefox by WebDriver BiDi.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use super::BrowserError;
use super::channel::Channel;
use super::program::Program;

/// Fake devices without questions, tabs in the back that work as the one in front, and nothing sent
/// to anybody.
const PREFERENCES: &str = r#"
user_pref("media.navigator.streams.fake", true);
user_pref("media.navigator.permission.disabled", true);
user_pref("media.autoplay.default", 0);
user_pref("media.devices.unfocused.enabled", true);
user_pref("media.block-autoplay-until-in-foreground", false);
user_pref("media.peerconnection.ice.loopback", true);
user_pref("media.peerconnection.ice.obfuscate_host_addresses", false);
user_pref("dom.min_background_timeout_value", 4);
user_pref("dom.ipc.processPrelaunch.enabled", false);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("browser.startup.page", 0);
user_pref("browser.aboutwelcome.enabled", false);
user_pref("app.update.enabled", false);
user_pref("app.normandy.enabled", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("toolkit.telemetry.enabled", false);
user_pref("network.proxy.type", 0);
user_pref("remote.active-protocols", 1);
"#;

/// The file of the profile with the port of its WebSocket.
const PORT_FILE: &str = "WebDriverBiDiServer.json";

#[derive(Debug)]
pub(crate) struct Firefox {
    channel: Channel,
    pub(super) version: String,
    _program: Arc<Program>,
}

#[derive(Debug, Clone)]
pub(crate) struct Tab {
    channel: Channel,
    context: String,
}

impl Firefox {
    pub(super) async fn start(path: PathBuf) -> Result<Self, BrowserError> {
        let mut program = Program::start(path, |profile| {
            fs::write(profile.join("user.js"), PREFERENCES)?;
            let profile = profile.display().to_string();
            let arguments = ["--headless", "--no-remote", "--remote-debugging-port", "0"];
            let arguments = arguments.map(str::to_owned).into_iter();
            Ok(arguments.chain(["--profile".to_owned(), profile]).collect())
        })?;
        let port = program.ready(PORT_FILE, port).await?;
        let channel = Channel::open(port, "/session").await?;
        let new = channel
            .call("session.new", json!({ "capabilities": {} }), None)
            .await?;
        let text = |name: &str| new.pointer(&format!("/capabilities/{name}"))?.as_str();
        let version = text("browserVersion").unwrap_or_default();
        Ok(Self {
            version: format!("Firefox/{version}"),
            channel,
            _program: Arc::new(program),
        })
    }

    pub(super) async fn open(&self, url: &str) -> Result<Tab, BrowserError> {
        let create = "browser.createUserContext";
        let user = self.channel.call(create, json!({}), None).await?;
        let user = text(&user, create, "userContext")?;
        let create = "browsingContext.create";
        let params = json!({ "type": "tab", "userContext": user, "background": true });
        let tab = self.channel.call(create, params, None).await?;
        let context = text(&tab, create, "context")?;
        let params = json!({ "context": context, "url": url, "wait": "complete" });
        let navigate = "browsingContext.navigate";
        self.channel.call(navigate, params, None).await?;
        Ok(Tab {
            channel: self.channel.clone(),
            context,
        })
    }
}

impl Tab {
    pub(super) async fn evaluate(&self, expression: &str) -> Result<String, BrowserError> {
        let method = "script.evaluate";
        let params = json!({
            "expression": expression, "awaitPromise": true, "target": { "context": self.context },
        });
        let result = self.channel.call(method, params, None).await?;
        let value = result.pointer("/result/value").and_then(Value::as_str);
        value.map(str::to_owned).ok_or_else(|| {
            let thrown = result.pointer("/exceptionDetails/text");
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

fn port(text: &str) -> Option<u16> {
    let value: Value = serde_json::from_str(text).ok()?;
    value.get("ws_port")?.as_u64()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_known_once_the_file_is_whole() {
        let whole = r#"{"ws_host":"127.0.0.1","ws_port":38111}"#;
        assert_eq!(port(whole), Some(38_111));
        assert_eq!(port(r#"{"ws_host":"127.0"#), None);
    }
}
