// The last hour, as this page has seen it: a value for each minute.
import { make } from '../make';
import { element } from '../page';
import { KINDS, Plot, type PlotKind } from '../plot';
import type { Overview, Worker } from './wire';

const MINUTE = 60_000;
const HOUR = 60;

type Reading = (overview: Overview, workers: Worker[]) => number;

const sum = (of: (worker: Worker) => number): Reading => (_, workers) => workers.reduce((all, worker) => all + of(worker), 0);

const ROWS: [id: string, name: string, kind: PlotKind, read: Reading][] = [
  ['hour-connections', 'PeerConnections', 'count', ({ counts }) => counts.peer_connections],
  ['hour-in', 'Coming in', 'bitrate', sum(({ bits_in }) => bits_in)],
  ['hour-out', 'Going out', 'bitrate', sum(({ bits_out }) => bits_out)],
  ['hour-core', 'The busiest core', 'share', (_, workers) => Math.max(0, ...workers.map(({ core_share }) => core_share))],
];

export class History {
  private readonly rows = ROWS.map(([id, name, kind, read]) => {
    const root = make('div');
    const value = make('dd', { testid: id });
    const plot = new Plot(kind, name, `plot-${id}`, MINUTE);
    const cell = make('dd', { className: 'plotted' });
    cell.append(plot.root);
    root.append(make('dt', { text: name }), value, cell);
    element('hour').append(root);
    return { kind, read, value, plot, minutes: [] as (number | undefined)[] };
  });
  private since = 0;

  /** Takes in a reading; the highest of a minute stands for it. */
  add(overview: Overview, workers: Worker[]): void {
    const now = Date.now();
    const passed = this.since === 0 ? 1 : Math.floor((now - this.since) / MINUTE);
    this.since += this.since === 0 ? now : passed * MINUTE;
    for (const { kind, read, value, plot, minutes } of this.rows) {
      const figure = read(overview, workers);
      for (let minute = 0; minute < Math.min(passed, HOUR); minute += 1) minutes.push(undefined);
      minutes.push(Math.max(figure, minutes.pop() ?? 0));
      minutes.splice(0, Math.max(0, minutes.length - HOUR));
      value.textContent = KINDS[kind].write(figure);
      plot.show([...new Array<undefined>(HOUR - minutes.length).fill(undefined), ...minutes]);
    }
  }
}
