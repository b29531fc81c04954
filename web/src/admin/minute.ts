// The plots of a PeerConnection's last minute.
import { make } from '../make';
import { element } from '../page';
import { KINDS, Plot, type PlotKind } from '../plot';
import type { Series } from './wire';

type Figure = Exclude<keyof Series, 'age'>;

const ROWS: [figure: Figure, name: string, kind: PlotKind][] = [
  ['bitrate_in', 'From the client', 'bitrate'],
  ['bitrate_out', 'To the client', 'bitrate'],
  ['loss_in', 'Lost from the client', 'loss'],
  ['loss_out', 'Lost to the client', 'loss'],
  ['round_trip', 'Round trip', 'time'],
  ['estimate', 'What the link to it carries', 'bitrate'],
  ['substream', 'Encoding sent (simulcast)', 'layer'],
  ['spatial', 'Spatial layer sent', 'layer'],
  ['temporal', 'Temporal layer sent', 'layer'],
];

/** Seconds that are plotted. */
const MINUTE = 60;

export class Minute {
  private readonly rows = ROWS.map(([figure, name, kind]) => {
    const id = figure.replace('_', '-');
    const root = make('div');
    const value = make('dd', { testid: `figure-${id}` });
    const plot = new Plot(kind, name, `plot-${id}`);
    const cell = make('dd', { className: 'plotted' });
    cell.append(plot.root);
    root.append(make('dt', { text: name }), value, cell);
    root.hidden = true;
    element('plots').append(root);
    return { figure, kind, root, value, plot };
  });

  /** Shows the minute; what is unknown in all of it gets no plot. */
  show(series: Series | undefined): void {
    for (const { figure, kind, root, value, plot } of this.rows) {
      const values = series ? inSeconds(series, figure) : [];
      const newest = values.at(-1);
      root.hidden = values.every((one) => one === undefined);
      value.textContent = newest === undefined ? '–' : KINDS[kind].write(newest);
      plot.show(values);
    }
  }
}

/** A value for each second of the minute, the newest last. */
function inSeconds(series: Series, figure: Figure): (number | undefined)[] {
  const values = new Array<number | undefined>(MINUTE).fill(undefined);
  const newest = series.age.at(-1) ?? 0;
  series.age.forEach((age, index) => {
    const second = MINUTE - 1 - Math.round(age - newest);
    if (second >= 0) values[second] = series[figure]?.[index] ?? undefined;
  });
  return values;
}
