// The overview: what the server does, who is connected, what goes wrong.
import { clearNotice, element, notice } from '../page';
import { everySeen, SECOND } from '../seen';
import { count } from '../units';
import { ask, explain } from './api';
import { ClusterPanel } from './cluster';
import { History } from './history';
import { findPlaces } from './places';
import { NAMES } from './metrics';
import { showResources } from './resources';
import { Sessions, short } from './sessions';
import { Settings } from './settings';
import { showFigures } from './table';
import { Workers } from './workers';
import { Findings } from './findings';
import type { Counter, EventHandler, Hour, Metric, Overview, ServerInfo, Worker } from './wire';

/** How often the overview is asked for, in milliseconds. */
const PERIOD = 2 * SECOND;

/** How often rooms and mountpoints are asked for, in milliseconds. */
const RESOURCES = 10 * SECOND;

const workers = new Workers(PERIOD);
const findings = new Findings();
const hour = new History();
const cluster = new ClusterPanel();
const sessions = new Sessions(() => void refresh());
const settings = new Settings((error) => {
  notice('error', explain(error));
  void readSettings();
});
/** Why the server could not be asked, as it stands on the page. */
let failure = '';
/** The newest question: an answer to an older one is not shown. */
let asked = 0;
/** How many wait for their answers. */
let waiting = 0;
let listing = false;

everySeen(PERIOD, () => {
  void readSettings();
  // A server that is slow is not asked again and again.
  return () => void (waiting === 0 && refresh());
});
everySeen(RESOURCES, () => () => void list());

async function refresh(): Promise<void> {
  const question = (asked += 1);
  waiting += 1;
  await guarded(async () => {
    const [overview, { workers: all }] = await Promise.all([
      ask<Overview>('overview', sessions.wanted),
      ask<{ workers: Worker[] }>('workers_info'),
    ]);
    if (question !== asked) return;
    show(overview, all);
    await findPlaces(overview.sessions);
  });
  waiting -= 1;
}

async function list(): Promise<void> {
  if (listing) return;
  listing = true;
  await guarded(async () => {
    const [mountpoints, { sessions: worst }, past, { metrics }] = await Promise.all([
      showResources(),
      ask<Overview>('overview', { sort: 'loss', limit: 5 }),
      ask<Hour>('history'),
      ask<{ metrics: Metric[] }>('metrics', { names: NAMES }),
      cluster.refresh(),
    ]);
    hour.show(past);
    findings.figures(metrics);
    findings.media(mountpoints);
    findings.cluster(cluster.findings);
    findings.worst(worst);
  });
  listing = false;
}

async function readSettings(): Promise<void> {
  await guarded(async () => {
    const info = await ask<ServerInfo>('info');
    const name = info['server-name'] && `“${info['server-name']}”`;
    element('status').textContent = ['Portunus', info['portunus-version'], name].filter(Boolean).join(' ');
    await settings.read(info['accepting-new-sessions'] ?? true);
  });
}

/** Does what asks the server; says so if it cannot be asked, until it can. */
async function guarded(work: () => Promise<void>): Promise<void> {
  try {
    await work();
    if (failure) clearNotice();
    failure = '';
  } catch (error) {
    // It is announced, and not again and again.
    if (explain(error) === failure) return;
    failure = explain(error);
    notice('error', failure);
  }
}

function show(overview: Overview, all: Worker[]): void {
  workers.show(overview, all);
  findings.show(overview, all);
  sessions.show(overview.sessions, overview.total);
  showTrouble(overview.trouble);
  showHandlers(overview.handlers);
}

function showTrouble(trouble: Counter[]): void {
  const bad = trouble.filter(({ value }) => value > 0);
  showFigures(element('trouble'), bad.map(({ help, value }) => [help, count(value)]));
  const none = element('no-trouble');
  none.hidden = bad.length > 0;
  none.textContent = `All ${trouble.length} counters of what goes wrong are 0.`;
}

function showHandlers(handlers: EventHandler[]): void {
  element('no-handlers').hidden = handlers.length > 0;
  const told = ({ running, waiting, dropped, counters }: EventHandler) =>
    [
      ...(running ? [] : ['failed: see the log']),
      ...counters.map(({ name, value }) => `${count(value)} ${name.replace(/_/g, ' ')}`),
      `${count(waiting)} waiting`,
      `${count(dropped)} not taken in time`,
    ].join(', ');
  showFigures(element('handlers'), handlers.map((handler) => [short(handler.package), told(handler)]));
}
