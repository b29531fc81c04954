//! Commands that concern a source.

use std::time::Instant;

use portunus_graph::SourceRef;

use crate::command::SourceCommand;
use crate::worker::Worker;

impl Worker {
    pub(super) fn take_source_command(
        &mut self,
        source: SourceRef,
        command: SourceCommand,
        now: Instant,
    ) {
        let (graph, peers, others) = (&mut self.graph, &mut self.peers, &mut self.others);
        let key = graph.key(source);
        match command {
            SourceCommand::SetClock { encoding, clock } => {
                if let Some(key) = key {
                    graph.set_clock(key, encoding, clock, others);
                }
            }
            SourceCommand::SetFormat(format) => graph.take_format(source, format),
            SourceCommand::End => self.end_source(source, now),
            SourceCommand::RequestKeyframe { encoding } => {
                if let Some(key) = key {
                    graph.want_keyframe(key, encoding);
                }
            }
            SourceCommand::Subscribe { worker } => {
                let to = (others, &mut self.counters);
                graph.subscribe(source, worker, peers, to, now);
            }
            SourceCommand::Unsubscribe { worker } => graph.unsubscribe(source, worker, peers, now),
            SourceCommand::KeepKeyframe(keep) => graph.keep_keyframe(source, keep, peers, others),
            SourceCommand::SetKeyframeInterval(interval) => {
                graph.set_keyframe_interval(source, interval, peers, now);
            }
            SourceCommand::RequestKeyframes => {
                if let Some(key) = key {
                    graph.want_keyframes(key);
                }
            }
            SourceCommand::ReportBitrate(bitrate) => {
                if let Some(key) = key {
                    self.viewer_takes(key, bitrate, now);
                }
            }
            SourceCommand::SetDemand { worker, demand } => {
                if let Some(key) = key {
                    graph.take_demand(key, worker, demand);
                }
            }
            SourceCommand::SetLimit { worker, limit } => {
                graph.take_limit(source, worker, limit, peers, now);
            }
        }
    }
}
