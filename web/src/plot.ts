// A small plot of one figure over the last minutes, drawn as SVG so that its colours follow the scheme of the page.
import { make } from './make';
import { SECOND } from './seen';
import { bitrate, percent, time } from './units';

/** How many samples are kept. */
const SAMPLES = 60;

/** Samples that are further apart, in periods, have missing ones between them. */
const GAP = 2;

/** The units of the drawing: one a sample across, and these upwards. */
const HEIGHT = 20;

/** Ends of an axis, times a power of ten. */
const ROUND = [1, 1.5, 2, 3, 4, 5, 6, 8, 10];

/** A quantity to plot: the format of its values, and the least end of its axis. */
export const KINDS = {
  /** bit/s */
  bitrate: { write: bitrate, least: 10_000 },
  /** A share, 0 to 1. */
  loss: { write: percent, least: 0.01 },
  /** Seconds. */
  time: { write: time, least: 0.01 },
  /** Of simulcast or SVC, the lowest is 0. */
  layer: { write: (layer: number) => String(layer), least: 2 },
  count: { write: (number: number) => String(Math.round(number)), least: 2 },
  share: { write: percent, least: 0.1 },
};

export type PlotKind = keyof typeof KINDS;

export class Plot {
  readonly root: HTMLElement;
  private readonly kind: (typeof KINDS)[PlotKind];
  private readonly line = svg('path', { class: 'line' });
  private readonly area = svg('path', { class: 'area' });
  private readonly most = make('span');
  /** The newest is the last. Undefined is a second without a sample. */
  private samples: (number | undefined)[] = [];
  /** When the newest was taken, in milliseconds. */
  private at = 0;

  /** `name` is the quantity; a new name takes effect with the next sample. A sample is taken each `period` milliseconds. */
  constructor(kind: PlotKind, public name: string, testid: string, private readonly period = SECOND) {
    this.kind = KINDS[kind];
    this.root = make('div', { className: `plot ${kind}`, testid });
    this.root.setAttribute('role', 'img');
    const drawing = svg('svg', { viewBox: `0 0 ${SAMPLES - 1} ${HEIGHT}`, preserveAspectRatio: 'none' });
    drawing.append(this.area, this.line);
    const axis = make('span', { className: 'axis' });
    axis.append(this.most, make('span', { text: '0' }));
    this.root.append(drawing, axis);
    this.draw();
  }

  /** Takes in the sample of this period; undefined if there is no figure. */
  add(value: number | undefined): void {
    const now = performance.now();
    const elapsed = (now - this.at) / this.period;
    const missing = this.samples.length > 0 && elapsed > GAP ? Math.round(elapsed) - 1 : 0;
    for (let i = 0; i < Math.min(missing, SAMPLES); i += 1) this.samples.push(undefined);
    this.samples.push(value);
    this.samples = this.samples.slice(-SAMPLES);
    this.at = now;
    this.draw();
  }

  /** Takes in all samples at once, the newest last; undefined is a period without a figure. */
  show(samples: (number | undefined)[]): void {
    this.samples = samples.slice(-SAMPLES);
    this.draw();
  }

  clear(): void {
    this.show([]);
  }

  private draw(): void {
    const { samples, kind } = this;
    const known = samples.filter((value) => value !== undefined);
    const largest = Math.max(0, ...known);
    const top = axisEnd(Math.max(largest, kind.least));
    const runs = runsOf(samples, top);
    this.line.setAttribute('d', runs.map(lineOf).join(''));
    this.area.setAttribute('d', runs.map(areaOf).join(''));
    const some = known.length > 0;
    this.most.textContent = kind.write(top).replace(/^[\d.]+/, (digits) => String(Number(digits)));
    const newest = samples.at(-1);
    const now = newest === undefined ? 'unknown' : kind.write(newest);
    const minutes = (SAMPLES * this.period) / (60 * SECOND);
    const span = minutes === 1 ? 'last minute' : `last ${minutes} minutes`;
    const label = some ? `${this.name}, ${span}: now ${now}, at most ${kind.write(largest)}` : '';
    this.root.setAttribute('aria-label', label);
    this.root.title = label;
    this.root.classList.toggle('none', !some);
  }
}

type Point = readonly [x: number, y: number];

/** The points of samples that follow each other without a gap; the newest is at the right. */
function runsOf(samples: (number | undefined)[], top: number): Point[][] {
  const runs: Point[][] = [];
  let run: Point[] | undefined;
  samples.forEach((value, index) => {
    if (value === undefined) return void (run = undefined);
    if (!run) runs.push((run = []));
    run.push([SAMPLES - samples.length + index, round(HEIGHT * (1 - value / top))]);
  });
  return runs;
}

function lineOf(run: Point[]): string {
  const path = run.map(([x, y], index) => `${index === 0 ? 'M' : 'L'}${x},${y}`).join('');
  // A point alone becomes a dot.
  return run.length === 1 ? `${path}h0` : path;
}

function areaOf(run: Point[]): string {
  const [first, last] = [run[0], run.at(-1)];
  if (!first || !last || first === last) return '';
  return `M${first[0]},${HEIGHT}${run.map(([x, y]) => `L${x},${y}`).join('')}L${last[0]},${HEIGHT}Z`;
}

/** The next round number that is not below the value. */
function axisEnd(value: number): number {
  const decade = 10 ** Math.floor(Math.log10(value));
  const step = ROUND.find((step) => step * decade >= value * (1 - 1e-9)) ?? 10;
  return step * decade;
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}

function svg<K extends keyof SVGElementTagNameMap>(tag: K, attributes: Record<string, string>): SVGElementTagNameMap[K] {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}
