//! The tables of a cluster: its nodes, its figures, and what viewers lost by each event.

use super::table::{Entry, Table};
use super::view::Section;
use crate::figures::{bits_per_s, count, digits, percent, time_us};
use crate::record::{Act, Cluster, News, NodeLoad, RelayCost};

/// Returns the tables of a section with clusters. Empty if there is none.
pub(super) fn of(section: &Section<'_>) -> Vec<Table> {
    let clusters = section.runs().filter_map(|run| run.cluster.as_ref());
    let tables = clusters.flat_map(|cluster| [nodes(cluster), figures(cluster), acts(cluster)]);
    tables.filter(|table| !table.rows.is_empty()).collect()
}

fn table<const N: usize>(headings: [&str; N], rows: Vec<[String; N]>) -> Table {
    let row = |cells: [String; N]| cells.into_iter().map(Entry::of).collect();
    Table {
        headings: headings.map(str::to_owned).into(),
        rows: rows.into_iter().map(row).collect(),
    }
}

fn us(us: Option<f64>) -> String {
    us.map_or_else(String::new, time_us)
}

/// CPU time for each viewer, in µs for a second.
fn each_us(cores: Option<f64>, viewers: u32) -> String {
    let each = cores.map(|cores| cores * 1e6 / f64::from(viewers.max(1)));
    each.map_or_else(String::new, time_us)
}

fn nodes(cluster: &Cluster) -> Table {
    let row = |name: &str, cpu: Option<f64>, node: Option<&NodeLoad>, viewers: u32| {
        let delay = node.and_then(|node| node.delay);
        let hop = node.and_then(|node| node.hop);
        [
            name.to_owned(),
            count(viewers.into()),
            cpu.map_or_else(String::new, digits),
            each_us(cpu, viewers),
            node.map_or_else(String::new, |node| percent(node.delivered_share)),
            node.map_or_else(String::new, |node| percent(node.lost_share)),
            node.map_or_else(String::new, |node| bits_per_s(node.received_bps)),
            us(delay.map(|delay| delay.p50_us)),
            us(delay.map(|delay| delay.p99_us)),
            us(node.and_then(|node| node.round_trip_us)),
            us(hop.map(|hop| hop.p50_us)),
            us(hop.map(|hop| hop.p99_us)),
        ]
    };
    let viewers = cluster.each.first().map_or(0, |node| node.viewers);
    let alone = cluster.alone_cpu_cores;
    let alone = alone.map(|cpu| row("one server alone", Some(cpu), None, viewers));
    let each = cluster.each.iter();
    let each = each.map(|node| row(&node.node, node.cpu_cores, Some(node), node.viewers));
    table(
        [
            "node",
            "viewers",
            "CPU cores",
            "CPU/viewer and s",
            "delivered",
            "lost",
            "throughput",
            "delay p50",
            "delay p99",
            "round trip",
            "hop p50",
            "hop p99",
        ],
        alone.into_iter().chain(each).collect(),
    )
}

fn figures(cluster: &Cluster) -> Table {
    let mut rows = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        rows.extend(value.map(|value| [name.to_owned(), value]));
    };
    let times = cluster.times_one.map(|times| format!("{}x", digits(times)));
    add("viewers of all nodes, of those of one server", times);
    if let Some(relay) = &cluster.relay {
        relayed(relay, &mut add);
    }
    let gone = cluster.gone_s().max_by(f64::total_cmp);
    let gone = gone.map(|gone| time_us(gone * 1e6));
    add("people of a killed node are gone elsewhere after", gone);
    table(["figure", "value"], rows)
}

fn relayed(relay: &RelayCost, add: &mut impl FnMut(&str, Option<String>)) {
    let each = |cores: f64| Some(format!("{} a second", time_us(cores * 1e6)));
    add(
        "CPU time of a relayed source at its node",
        each(relay.source_cpu_cores),
    );
    add(
        "CPU time of one more viewer there",
        each(relay.viewer_cpu_cores),
    );
    let ratio = relay
        .in_viewers()
        .map(|ratio| format!("{}x", digits(ratio)));
    add("a relayed source, of a viewer", ratio);
    add(
        "CPU time of a relayed source and its viewer at the other node",
        each(relay.far_cpu_cores),
    );
    let first = |delays: Option<crate::record::Delays>| {
        delays.map(|it| format!("{}, p99 {}", time_us(it.p50_us), time_us(it.p99_us)))
    };
    add(
        "first packet at its node after",
        first(relay.first_packet_here),
    );
    add(
        "first packet at another node after",
        first(relay.first_packet_there),
    );
}

fn acts(cluster: &Cluster) -> Table {
    let rows = cluster.acts.iter().flat_map(|act| {
        let (losses, notices) = (act.losses.iter(), act.notices.iter());
        let losses = losses.map(|losses| {
            format!(
                "at {}, {}: {} of {} lost {} packets, gap up to {}",
                losses.node,
                losses.watched,
                losses.affected,
                losses.viewers,
                count(losses.lost_packets as f64),
                time_us(losses.longest_gap_ms * 1e3)
            )
        });
        let notices = notices.map(|notice| {
            let news = match notice.news {
                News::Left => "leaves",
                News::Announced => "publishes",
            };
            let after = time_us(notice.after_s * 1e6);
            format!(
                "at {}: {}'s publisher {news}, after {after}",
                notice.node, notice.of
            )
        });
        let failure = act.failure.iter().map(|why| format!("not done: {why}"));
        let mut all: Vec<String> = failure.chain(losses).chain(notices).collect();
        if all.is_empty() {
            all.push(format!(
                "nothing, for {} viewers",
                count(act.viewers.into())
            ));
        }
        let all = all.into_iter().enumerate();
        all.map(move |(at, text)| line(act, at, text))
    });
    table(["event", "what came of it"], rows.collect())
}

fn line(act: &Act, at: usize, text: String) -> [String; 2] {
    let event = match at {
        0 => format!("{}  {}", time_us(act.at_s * 1e6), act.event),
        _ => String::new(),
    };
    [event, text]
}

#[cfg(test)]
mod tests {
    use crate::record::{Act, Cluster, Losses, NodeLoad, example};
    use crate::report::for_terminal;

    #[test]
    fn nodes_and_events_have_tables() {
        let mut report = example::report();
        report.runs.truncate(1);
        for run in &mut report.runs {
            run.cluster = Some(Cluster {
                nodes: 2,
                alone_cpu_cores: Some(0.1),
                each: vec![NodeLoad {
                    node: "A".to_owned(),
                    viewers: 100,
                    cpu_cores: Some(0.11),
                    delivered_share: 1.0,
                    lost_share: 0.0125,
                    ..NodeLoad::default()
                }],
                times_one: Some(1.94),
                acts: vec![
                    Act {
                        event: "start".to_owned(),
                        viewers: 6,
                        ..Act::default()
                    },
                    Act {
                        event: "cut A-B".to_owned(),
                        at_s: 5.0,
                        losses: vec![Losses {
                            node: "B".to_owned(),
                            watched: "A's publisher".to_owned(),
                            viewers: 1,
                            affected: 1,
                            lost_packets: 1_234,
                            longest_gap_ms: 5_000.0,
                        }],
                        ..Act::default()
                    },
                ],
                ..Cluster::default()
            });
        }
        let text = for_terminal(&report);
        for said in [
            "one server alone",
            "1.94x",
            "1.25 %",
            "nothing, for 6 viewers",
            "at B, A's publisher: 1 of 1 lost 1,234 packets, gap up to 5.00 s",
        ] {
            assert!(text.contains(said), "{said}: {text}");
        }
    }
}
