//! Faults of a configuration that parses: in each section, and between sections.

use std::net::IpAddr;

use portunus_core::Networks;
use portunus_core::configuration::{Configuration, Finding, Probe, Severity};

use super::Config;

impl Config {
    /// Returns the faults of all sections. Blocks, and changes nothing.
    pub(crate) fn probe(&self) -> Vec<Finding> {
        self.findings(&self.look())
    }

    /// Examines all sections. Blocks, and changes nothing.
    pub(crate) fn look(&self) -> Probe {
        let mut probe = Probe::default();
        let api = &self.api;
        probe.section("server", |it| self.core.probe(it));
        probe.section("jwt", |it| self.jwt.probe(it));
        probe.section("media", |it| {
            self.media.probe(it);
            self.turn_client.probe(it);
        });
        probe.section("turn", |it| self.turn.probe(it));
        probe.section("audio", |it| self.audio.probe(it));
        probe.section("events", |it| {
            let handlers = self.event_handlers.iter();
            for handler in handlers.filter(|handler| handler.is_enabled()) {
                it.section(handler.name(), |it| handler.probe(it));
            }
            self.events.probe(it);
        });
        probe.section("http", |it| api.http.probe(it));
        probe.section("whip", |it| api.whip.probe(it));
        probe.section("websocket", |it| api.websocket.probe(it));
        probe.section("unix", |it| api.unix.probe(it));
        probe.section("mqtt", |it| api.mqtt.probe(it));
        probe.section("rabbitmq", |it| api.rabbitmq.probe(it));
        probe.section("nats", |it| api.nats.probe(it));
        probe.section("admin", |it| {
            self.admin.probe(it);
            api.admin.probe(it);
        });
        probe.section("cluster", |it| self.cluster.probe(it));
        probe.section("tls", |it| api.tls.probe(it));
        probe.section("recording", |it| self.recording.probe(it));
        let plugins = self.plugins.iter();
        for plugin in plugins.filter(|plugin| plugin.is_enabled()) {
            probe.section(plugin.name(), |it| plugin.own.probe(it));
        }
        self.probe_tokens(&mut probe);
        self.probe_admin(&mut probe);
        probe
    }

    fn probe_tokens(&self, probe: &mut Probe) {
        let (core, jwt) = (&self.core, &self.jwt);
        let files = [&jwt.secret_file, &jwt.key_file, &jwt.jwks_file];
        let are_signed = core.token_auth_secret.is_some()
            || jwt.secret.is_some()
            || files.iter().any(|file| file.is_some());
        if core.token_auth && core.tokens.is_empty() && !are_signed {
            let who = match core.api_secret {
                Some(_) => "only who shows server.api_secret is let in",
                None => "nobody is let in",
            };
            let text = format!(
                "there are no tokens: {who} until administrators add some. Set server.tokens, server.token_auth_secret or [jwt]"
            );
            probe.warning("server.token_auth", text);
        }
    }

    fn probe_admin(&self, probe: &mut Probe) {
        let admin = &self.api.admin;
        if !admin.listens() && admin.unix_path.is_none() {
            return;
        }
        let outside: Vec<_> = admin.bind.iter().filter(|it| !it.is_loopback()).collect();
        let has_secret = self.admin.secret.is_some();
        if !has_secret && !self.core.trust_loopback {
            probe.warning(
                "server.trust_loopback",
                "nobody may use the Admin API and the dashboard: set admin.secret",
            );
        } else if !has_secret && !outside.is_empty() && admin.listens() {
            probe.warning(
                "admin.bind",
                "from other machines nobody may use the Admin API and the dashboard: set admin.secret",
            );
        }
        let plain = admin.enabled || admin.ws;
        if has_secret && plain && outside.iter().any(|it| is_open(**it)) {
            probe.warning(
                "admin.bind",
                "admin.secret is sent unencrypted over the internet: use admin.https, with admin.enabled = false",
            );
        }
    }

    /// Returns the found faults. Keys that enable recordings need a folder for them.
    pub(crate) fn findings(&self, probe: &Probe) -> Vec<Finding> {
        let mut findings = probe.findings().to_vec();
        let of_all = |it: &Finding| it.key == "recording.dir" && it.severity == Severity::Error;
        let dir_is_wrong = findings.iter().any(of_all);
        for one in probe.recorded() {
            // The folder of all recordings is reported once.
            if let Err(finding) = self.recording.check(one)
                && !(dir_is_wrong && finding.severity == Severity::Error)
            {
                findings.push(finding);
            }
        }
        findings
    }
}

/// Whether an address may be a stranger's.
fn is_open(bound: IpAddr) -> bool {
    bound.is_unspecified() || Networks::default().allow(bound)
}
