// What is wrong with the server as a whole: the first thing that somebody wants to know who opens the dashboard.
import { render } from 'preact';
import { element } from '../page';
import { count, percent, time } from '../units';
import { mediaOf, named, type Mountpoint } from './resources';
import { short } from './sessions';
import { readMetrics } from './metrics';
import type { Metric, Overview, Worker } from './wire';

/** From where on a share of lost packets, a core and a delay of a worker, in seconds, are told. */
const LOSS = 0.05;
const FULL = 0.85;
const LATE = 0.04;
const STUCK = 3;
/** How many bad links are told. */
const LINKS = 5;
/** Counters grow at times; those that grew in the last minute are told, in milliseconds. */
const LATELY = 60_000;

interface Finding {
  text: string;
  href?: string;
}

export class Findings {
  private readonly counters = new Map<string, { value: number; grewAt?: number; by: number }>();
  private mountpoints: Mountpoint[] = [];
  private links: Finding[] = [];
  private metrics: Metric[] = [];
  private nodes: Finding[] = [];

  figures(metrics: Metric[]): void {
    this.metrics = metrics;
  }

  media(mountpoints: Mountpoint[]): void {
    this.mountpoints = mountpoints;
  }

  /** Sentences about the cluster. */
  cluster(texts: string[]): void {
    this.nodes = texts.map((text) => ({ text, href: '#cluster-title' }));
  }

  /** Sessions with the most loss first. */
  worst(sessions: Overview['sessions']): void {
    const handles = sessions.flatMap((session) => session.handles.map((handle) => ({ session, handle })));
    const lost = handles.map((one) => ({ ...one, loss: Math.max(one.handle.loss_in ?? 0, one.handle.loss_out ?? 0) }));
    this.links = lost
      .filter(({ loss }) => loss >= LOSS)
      .sort((a, b) => b.loss - a.loss)
      .slice(0, LINKS)
      .map(({ session, handle, loss }) => ({
        text: `${percent(loss)} of the packets are lost between the server and ${session.address ?? 'a client'} (${short(handle.plugin)})`,
        href: `connection.html?${new URLSearchParams({ session: String(session.session_id), handle: String(handle.handle_id) })}`,
      }));
  }

  show({ trouble, handlers }: Overview, workers: Worker[]): void {
    const findings: Finding[] = [
      ...workers.flatMap((worker) => {
        if (worker.silent >= STUCK) return [{ text: `Worker ${worker.worker} has been stuck for ${time(worker.silent)}` }];
        if (worker.core_share >= FULL) return [{ text: `Worker ${worker.worker} uses ${percent(worker.core_share)} of its core: the server is about full` }];
        return worker.lag_max >= LATE ? [{ text: `Worker ${worker.worker} is late by up to ${time(worker.lag_max)}: its core is busy with something else` }] : [];
      }),
      ...this.nodes,
      ...this.links,
      ...this.mountpoints
        .map((one) => ({ one, state: mediaOf(one) }))
        .filter(({ state }) => /^(silent|packets are refused)/.test(state))
        .map(({ one, state }) => ({ text: `Mountpoint ${named(one.id, one.description)}: ${state}` })),
      ...handlers.flatMap((handler) => {
        if (!handler.running) return [{ text: `The event handler ${short(handler.package)} has failed: see the log` }];
        return this.grown(`handler ${handler.package}`, handler.dropped) ? [{ text: `The event handler ${short(handler.package)} does not take events in time: some are dropped` }] : [];
      }),
      ...readMetrics(this.metrics, (name, value) => this.grown(name, value)).map((text) => ({ text })),
      ...trouble.flatMap(({ name, help, value }) => {
        const by = this.grown(name, value);
        return by ? [{ text: `In the last minute: ${count(by)} ${help}` }] : [];
      }),
    ];
    element('all-well').hidden = findings.length > 0;
    render(<>{findings.map(({ text, href }) => <li key={text}>{href ? <a href={href}>{text}</a> : text}</li>)}</>, element('wrong'));
  }

  /** By how much a counter has grown lately; those before the page was opened are not told. */
  private grown(name: string, value: number): number {
    const now = performance.now();
    const known = this.counters.get(name) ?? { value, by: 0 };
    const isOld = known.grewAt === undefined || now - known.grewAt > LATELY;
    const more = value - known.value;
    const by = more > 0 ? (isOld ? more : known.by + more) : isOld ? 0 : known.by;
    this.counters.set(name, { value, by, grewAt: more > 0 ? now : known.grewAt });
    return by;
  }
}
