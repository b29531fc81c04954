//! Settings of a subscription.

use super::Subscriber;
use super::layers::RelayedLayer;
use super::request::SubscriberConfigure;
use crate::Refusal;
use crate::publication::Publications;

impl Subscriber {
    /// Checks that a `configure` can be applied.
    pub(crate) fn check_configure(&self, configure: &SubscriberConfigure) -> Result<(), Refusal> {
        if self.owner_kicked {
            return Err(Refusal::OwnerKicked);
        }
        for mid in configure.lines.iter().filter_map(|s| s.mid.as_deref()) {
            if !self.lines.iter().any(|line| line.mid.as_str() == mid) {
                return Err(Refusal::NoSuchFeed(format!("mid {mid}")));
            }
        }
        if configure.offers() && self.lines.is_empty() {
            return Err(Refusal::SubscribeFirst);
        }
        Ok(())
    }

    /// Applies a `configure`. Returns the requested layers that are relayed already.
    pub(crate) fn configure(
        &mut self,
        configure: &SubscriberConfigure,
        publications: &Publications,
    ) -> Vec<RelayedLayer> {
        for line in &mut self.lines {
            line.send = configure.sends(line.kind).unwrap_or(line.send);
        }
        let mut current = Vec::new();
        for setting in &configure.lines {
            let mid = setting.mid.as_deref();
            let lines = self.lines.iter_mut();
            for line in lines.filter(|line| mid.is_none_or(|mid| mid == line.mid.as_str())) {
                current.extend(line.configure(setting, publications));
            }
        }
        self.relay(publications);
        current
    }
}
