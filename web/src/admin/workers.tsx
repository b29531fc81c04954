// The media workers, and what all of them carry.
import type { ComponentChildren } from 'preact';
import { make } from '../make';
import { element } from '../page';
import { Plot } from '../plot';
import { bitrate, count, duration, percent, time } from '../units';
import { Noted, showTable, type Column } from './table';
import type { Overview, Worker } from './wire';

/** A worker that is so late is marked, in seconds: two packets of audio. */
const LATE = 0.04;

/** A worker that has done nothing for so long is marked, in seconds. */
const STUCK = 3;

const COLUMNS: Column[] = [
  { name: 'Worker' },
  { name: 'Peers', figures: true },
  { name: 'Core', figures: true },
  { name: 'Late', figures: true },
  { name: 'In', figures: true },
  { name: 'Out', figures: true },
];

export class Workers {
  private readonly plots: { name: string; of: (worker: Worker) => number; value: HTMLElement; plot: Plot }[];
  private readonly uptime = row('Up for', 'uptime').value;
  private readonly counts: HTMLElement[];

  /** Overviews come each `period` milliseconds. */
  constructor(period: number) {
    this.counts = ['Sessions', 'Handles', 'PeerConnections'].map((name) => row(name, `count-${name.toLowerCase()}`).value);
    const ways: [string, string, (worker: Worker) => number][] = [
      ['bits-in', 'Coming in', ({ bits_in }) => bits_in],
      ['bits-out', 'Going out', ({ bits_out }) => bits_out],
    ];
    this.plots = ways.map(([id, name, of]) => {
      const { root, value } = row(name, id);
      const plot = new Plot('bitrate', name, `plot-${id}`, period);
      const cell = make('dd', { className: 'plotted' });
      cell.append(plot.root);
      root.append(cell);
      return { name, of, value, plot };
    });
  }

  show({ counts, uptime }: Overview, workers: Worker[]): void {
    this.uptime.textContent = duration(uptime);
    [counts.sessions, counts.handles, counts.peer_connections].forEach((number, index) => {
      const value = this.counts[index];
      if (value) value.textContent = count(number);
    });
    for (const { of, value, plot } of this.plots) {
      const bits = workers.reduce((sum, worker) => sum + of(worker), 0);
      value.textContent = bitrate(bits);
      plot.add(bits);
    }
    const root = element('workers');
    showTable(root, COLUMNS, workers.map(cells));
  }
}

function row(name: string, testid: string): { root: HTMLElement; value: HTMLElement } {
  const root = make('div');
  const value = make('dd', { text: '–', testid });
  root.append(make('dt', { text: name }), value);
  element('now').append(root);
  return { root, value };
}

function cells(worker: Worker): ComponentChildren[] {
  const isStuck = worker.silent >= STUCK;
  const rate = (bits: number, packets: number) => <Noted text={bitrate(bits)} more={[`${count(packets)}/s`]} />;
  return [
    <Noted text={isStuck ? `${worker.worker}: stuck for ${time(worker.silent)}` : String(worker.worker)} bad={isStuck} />,
    count(worker.peers),
    percent(worker.core_share),
    <Noted text={time(worker.lag_max)} more={[`mostly ${time(worker.lag_median)}`]} bad={worker.lag_max >= LATE} />,
    rate(worker.bits_in, worker.packets_in),
    rate(worker.bits_out, worker.packets_out),
  ];
}
