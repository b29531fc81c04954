//! The server's costs of joins, separated from those of relaying meanwhile.

use crate::record::Step;

/// The least share of joins in the server's CPU time for separating them from relaying.
const CERTAIN: f64 = 0.15;

/// The rate of joining PeerConnections.
#[derive(Debug, Clone, Copy)]
pub(super) struct Joining {
    pub(super) per_s: f64,
    pub(super) per_cpu_s: Option<f64>,
}

/// The cost of joins, before the cost of relaying is known.
pub(super) struct Burst {
    /// PeerConnections that joined.
    pub(super) joined: usize,
    pub(super) failed: u32,
    pub(super) length_s: f64,
    /// Packets that participants received meanwhile.
    pub(super) packets: u64,
    pub(super) server_cpu_s: Option<f64>,
}

impl Burst {
    /// Returns the rate without relaying, whose CPU time is estimated from the packets, and their
    /// cost before and afterwards.
    pub(super) fn per_s(&self, before: Option<&Step>, after: &Step) -> Joining {
        let joined = self.joined as f64;
        let of_packet = |step: &Step| {
            let cpu_s = step.server_cpu_cores? / step.received_pps;
            cpu_s.is_finite().then_some(cpu_s)
        };
        let steps = before.into_iter().chain([after]);
        let costs: Vec<f64> = steps.filter_map(of_packet).collect();
        let packet_s = costs.iter().sum::<f64>() / costs.len().max(1) as f64;
        let relaying_s = self.packets as f64 * packet_s;
        let joins_s = self.server_cpu_s.map(|cpu_s| cpu_s - relaying_s);
        // The small difference of two large numbers says nothing.
        let certain = |joins_s: &f64| {
            self.server_cpu_s
                .is_some_and(|all| *joins_s > all * CERTAIN)
        };
        Joining {
            per_s: joined / self.length_s.max(1e-9),
            per_cpu_s: joins_s.filter(certain).map(|cpu_s| joined / cpu_s),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_are_paid_without_relaying() {
        let burst = Burst {
            joined: 1_000,
            failed: 0,
            length_s: 2.0,
            packets: 50_000,
            server_cpu_s: Some(1.5),
        };
        let step = |cores| Step {
            server_cpu_cores: Some(cores),
            received_pps: 100_000.0,
            ..Step::default()
        };
        let joining = burst.per_s(Some(&step(0.9)), &step(1.1));
        assert_eq!(joining.per_s, 500.0);
        assert!((joining.per_cpu_s.unwrap_or(0.0) - 1_000.0).abs() < 1e-6);
        // Relaying took nearly everything, so the result is unknown.
        let busy = Burst {
            packets: 145_000,
            ..burst
        };
        assert_eq!(busy.per_s(Some(&step(0.9)), &step(1.1)).per_cpu_s, None);
    }
}
