// The last hour, as the server has kept it: a value for each minute.
import { make } from '../make';
import { element } from '../page';
import { KINDS, Plot, type PlotKind } from '../plot';
import type { Hour } from './wire';

const MINUTE = 60_000;
const HOUR = 60;

const ROWS: [figure: keyof Hour, name: string, kind: PlotKind][] = [
  ['peer_connections', 'PeerConnections', 'count'],
  ['bits_in', 'Coming in', 'bitrate'],
  ['bits_out', 'Going out', 'bitrate'],
  ['core_share', 'The busiest core', 'share'],
  ['lag_max', 'The latest worker', 'time'],
];

export class History {
  private readonly rows = ROWS.map(([figure, name, kind]) => {
    const id = `hour-${figure.replace('_', '-')}`;
    const root = make('div');
    const value = make('dd', { testid: id });
    const plot = new Plot(kind, name, `plot-${id}`, MINUTE);
    const cell = make('dd', { className: 'plotted' });
    cell.append(plot.root);
    root.append(make('dt', { text: name }), value, cell);
    element('hour').append(root);
    return { figure, kind, value, plot };
  });

  /** Shows the hour; a server that was started less than an hour ago has a part of it. */
  show(hour: Hour): void {
    for (const { figure, kind, value, plot } of this.rows) {
      const minutes = hour[figure];
      const most = Math.max(0, ...minutes);
      value.textContent = `at most ${KINDS[kind].write(most)}`;
      plot.show([...new Array<undefined>(Math.max(0, HOUR - minutes.length)).fill(undefined), ...minutes]);
    }
  }
}
