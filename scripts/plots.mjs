// Draws the plots of docs/performance/loads.md as SVG files beside it: bars from figures.csv, which has the figures of that page,
// and lines from it and from the samples of `portunus-hammer lab`.
import { readFileSync, writeFileSync } from 'node:fs';

const FOLDER = new URL('../docs/performance/', import.meta.url);
const WIDTH = 720;
const COLOURS = { Portunus: '#0b63ce', Janus: '#d9480f', mediasoup: '#2b8a3e', ceiling: '#8a6d1a' };
/** Steps of a run that were too short to be held for some seconds are left out of the lines. */
const LEAST_SAMPLES = 5;

const figures = table('figures.csv');

bars('viewers', 'Viewers of one source of 2 Mbit/s, one core');
bars('loads', 'Carried, as % of the ceiling for the same packets', { mark: 100 });
bars('rooms', 'Rooms of 8: Gbit/s that one core delivers');
bars('webinar', '10 publishers to 140 subscribers: µs of CPU for each packet that arrives');
bars('star', '33 who all see each other: % of what the ceiling sends with the same CPU time', { mark: 100 });
bars('memory', 'KiB of memory for one more');
bars('joins', 'Joins for each second of CPU time');
bars('workers', 'Two workers on two cores, three times: µs of CPU for each packet');
bars('calls', 'Calls by SIP that one core carries in time');
bars('calls-cpu', 'Calls by SIP: CPU cores, of one that there is');
bars('calls-delay', '330 calls by SIP: delay of 99 of 100 packets, in ms');
bars('calls-memory', 'KiB of memory for each of 330 calls by SIP');
bars('refreshes', 'Registrations of 1,000 accounts: ms of CPU for each refresh');
lines('viewers-delay', 'Delay of half of the packets, by viewers of one source', 'viewers', samples('portunus-and-janus-2mbit-epyc.csv'));
lines('rooms-delay', 'Delay of half of the packets, by rooms of 8', 'rooms', samples('portunus-mediasoup-and-janus-rooms.csv'));
lines('delay', 'Delay by viewers of 200 sources of 2 Mbit/s', 'viewers', ofFigures('delay'));

/** The rows of a CSV file, as objects. */
function table(name) {
  const [head, ...rows] = readFileSync(new URL(name, FOLDER), 'utf8').trim().split('\n').map((line) => line.split(','));
  return rows.map((row) => Object.fromEntries(head.map((key, index) => [key, row[index]])));
}

/** The median delay of each server, in µs, at each number of participants that was held for some seconds. */
function samples(name) {
  const names = { portunus: 'Portunus', janus: 'Janus', mediasoup: 'mediasoup' };
  const steps = new Map();
  for (const row of table(name)) {
    const key = `${names[row.server]} ${row.participants}`;
    steps.set(key, [...(steps.get(key) ?? []), row]);
  }
  const found = new Map();
  for (const [key, rows] of steps) {
    const delays = rows.map((row) => Number(row.delay_p50_us)).filter((delay) => delay > 0).sort((a, b) => a - b);
    if (delays.length < LEAST_SAMPLES) continue;
    const [server, participants] = key.split(' ');
    add(found, server, [Number(participants), delays[delays.length >> 1]]);
  }
  return found;
}

function ofFigures(plot) {
  const found = new Map();
  for (const row of figures.filter((row) => row.plot === plot)) add(found, row.series, [Number(row.label), Number(row.value)]);
  return found;
}

function add(series, name, point) {
  series.set(name, [...(series.get(name) ?? []), point].sort(([a], [b]) => a - b));
}

function bars(plot, title, { mark } = {}) {
  const rows = figures.filter((row) => row.plot === plot);
  const left = 230;
  const most = Math.max(mark ?? 0, ...rows.map(({ value }) => Number(value)));
  const scale = (WIDTH - left - 90) / most;
  const parts = rows.map(({ series, label, value }, index) => {
    const y = 48 + index * 32;
    const width = Math.max(1, Number(value) * scale);
    return `<text x="${left - 10}" y="${y + 16}" text-anchor="end">${escape(label)}</text>
<rect x="${left}" y="${y}" width="${round(width)}" height="22" rx="2" fill="${COLOURS[series]}"/>
<text x="${round(left + width + 8)}" y="${y + 16}">${Number(value).toLocaleString('en')}</text>`;
  });
  const height = 60 + rows.length * 32;
  if (mark) {
    const x = round(left + mark * scale);
    parts.push(`<line x1="${x}" y1="42" x2="${x}" y2="${height - 14}" stroke="${COLOURS.ceiling}" stroke-width="2" stroke-dasharray="4 4"/>`);
  }
  save(plot, title, height, parts);
}

/** Both axes are logarithmic; delays are in µs. */
function lines(plot, title, what, series) {
  const [left, top, width, height] = [80, 64, WIDTH - 110, 260];
  const points = [...series.values()].flat();
  const x = axis(points.map(([at]) => at), left, left + width);
  const y = axis(points.map(([, delay]) => delay), top + height, top);
  const parts = [];
  for (const tick of y.ticks) {
    parts.push(`<line x1="${left}" y1="${y.at(tick)}" x2="${left + width}" y2="${y.at(tick)}" stroke="#8884"/>
<text x="${left - 8}" y="${y.at(tick) + 4}" text-anchor="end">${duration(tick)}</text>`);
  }
  for (const tick of x.ticks) parts.push(`<text x="${x.at(tick)}" y="${top + height + 20}" text-anchor="middle">${tick.toLocaleString('en')}</text>`);
  parts.push(`<text x="${left + width / 2}" y="${top + height + 40}" text-anchor="middle">${what}</text>`);
  const palette = Object.values(COLOURS);
  let legend = left;
  [...series].forEach(([name, line], index) => {
    const colour = COLOURS[name] ?? palette[index];
    const path = line.map(([at, delay]) => `${x.at(at)},${y.at(delay)}`).join(' ');
    parts.push(`<polyline points="${path}" fill="none" stroke="${colour}" stroke-width="2"/>`);
    for (const [at, delay] of line) parts.push(`<circle cx="${x.at(at)}" cy="${y.at(delay)}" r="3" fill="${colour}"/>`);
    parts.push(`<text x="${legend}" y="48" fill="${colour}" font-weight="600">${escape(name)}</text>`);
    legend += 24 + 8 * name.length;
  });
  save(plot, title, top + height + 56, parts);
}

/** A logarithmic axis from one place to another, with the 1s, 2s and 5s within as ticks. */
function axis(values, from, to) {
  const [low, high] = [Math.min(...values) / 1.2, Math.max(...values) * 1.2];
  const ticks = [];
  for (let power = 1; power < high; power *= 10) ticks.push(...[power, 2 * power, 5 * power].filter((tick) => tick >= low && tick <= high));
  return { ticks, at: (value) => round(from + ((to - from) * Math.log(value / low)) / Math.log(high / low)) };
}

function duration(us) {
  if (us >= 1e6) return `${us / 1e6} s`;
  return us >= 1000 ? `${us / 1000} ms` : `${us} µs`;
}

function save(plot, title, height, parts) {
  const style = 'text{font:13px system-ui,"Liberation Sans",Arial,sans-serif;fill:#14181f}';
  const body = parts.join('\n').replace(/<text ([^>]*)fill="([^"]*)"/g, '<text $1style="fill:$2"');
  writeFileSync(
    new URL(`${plot}.svg`, FOLDER),
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="${escape(title)}">
<style>${style}</style>
<rect width="${WIDTH}" height="${height}" fill="#fff"/>
<text x="16" y="26" style="font-weight:600;font-size:15px">${escape(title)}</text>
${body}
</svg>
`,
  );
}

function escape(text) {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/"/g, '&quot;');
}

function round(value) {
  return Math.round(value * 10) / 10;
}
