// Events of the server, as they come.
import { make } from '../make';
import { element, notice, clearNotice } from '../page';
import { adminPath, asksForSecret, transaction, type Json } from './api';
import { inShort, kindName, KINDS, pluginOf } from './kinds';
import { askSecret, keepSecret, secret } from './secret';
import { short } from './sessions';
import type { ServerEvent } from './wire';

/** How many events the page keeps. */
const KEPT = 500;

/** How long it waits before it connects again, in milliseconds. */
const AGAIN = 3000;

const pluginSelect = element<HTMLSelectElement>('plugin');
const sessionInput = element<HTMLInputElement>('session');
const pauseButton = element<HTMLButtonElement>('pause');
const list = element('events');
const noiseBox = element<HTMLInputElement>('noise');

/** The numbers of events with figures of media. */
const MEDIA = 32;
const STATISTICS = 3;
const SERVER = 256;

/** The newest is the last. */
let kept: ServerEvent[] = [];
/** Those that came since the page was drawn. */
let fresh: ServerEvent[] = [];
let paused = false;
let drawing = false;
/** Those that were thrown away, as there were more. */
let dropped = 0;

for (const [, label, name] of KINDS) {
  const field = make('label', { className: 'check', text: '' });
  const box = make('input', { testid: `kind-${label}` });
  box.type = 'checkbox';
  box.checked = true;
  box.value = label;
  box.addEventListener('change', drawAll);
  field.append(box, name);
  element('kinds').append(field);
}
sessionInput.value = new URLSearchParams(location.search).get('session') ?? '';
sessionInput.addEventListener('input', drawAll);
pluginSelect.addEventListener('change', drawAll);
noiseBox.addEventListener('change', drawAll);
pauseButton.addEventListener('click', () => {
  paused = !paused;
  pauseButton.setAttribute('aria-pressed', String(paused));
  if (!paused) drawAll();
  tellCount();
});
element('clear').addEventListener('click', () => {
  kept = [];
  fresh = [];
  dropped = 0;
  drawAll();
});
document.addEventListener('visibilitychange', drawSoon);
connect(secret(), false);

/** Watches all kinds: which of them are shown is for the page to say, so that those that came before can be shown too. */
function connect(shown: string, asked: boolean): void {
  const { protocol, host } = location;
  const socket = new WebSocket(`${protocol === 'https:' ? 'wss:' : 'ws:'}//${host}${adminPath()}`, 'janus-admin-protocol');
  let refused = false;
  socket.addEventListener('open', () => {
    socket.send(JSON.stringify({ janus: 'subscribe_events', transaction: transaction(), ...(shown && { admin_secret: shown }) }));
  });
  socket.addEventListener('message', ({ data }) => {
    const message = JSON.parse(String(data)) as Json;
    if (message['janus'] === 'event') return came(message['event'] as ServerEvent);
    const error = message['error'] as { code: number; reason: string } | undefined;
    if (!error) {
      if (asked) keepSecret(shown);
      clearNotice();
      status('Watching.');
      return;
    }
    refused = true;
    socket.close();
    if (!asksForSecret(error)) return notice('error', `The server refused that: ${error.reason} (${error.code}).`);
    if (shown) keepSecret('');
    void askSecret(asked).then((entered) => connect(entered, true));
  });
  socket.addEventListener('close', () => {
    status('Not watching.');
    if (refused) return;
    notice('warning', 'The server cannot be reached. Is it running? It is tried again.');
    setTimeout(() => connect(shown, asked), AGAIN);
  });
}

function came(event: ServerEvent): void {
  fresh.push(event);
  while (fresh.length > KEPT) {
    fresh.shift();
    dropped += 1;
  }
  if (paused) tellCount();
  else drawSoon();
}

/** Draws what has come, once for all that come together, and not while nobody sees it. */
function drawSoon(): void {
  if (drawing || paused || document.hidden) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    draw();
  });
}

function draw(): void {
  const added = fresh;
  fresh = [];
  kept.push(...added);
  const over = Math.max(0, kept.length - KEPT);
  dropped += over;
  kept = kept.slice(over);
  for (const event of added) offer(pluginOf(event));
  list.prepend(...added.filter(isWanted).map(row).reverse());
  while (list.children.length > KEPT) list.lastElementChild?.remove();
  tellCount();
}

/** Draws all anew: something else is to be shown of what has come. */
function drawAll(): void {
  if (!paused) draw();
  list.replaceChildren(...kept.filter(isWanted).map(row).reverse());
  tellCount();
}

/** Whether an event is about statistics, or about this dashboard itself. */
function isNoise(event: ServerEvent): boolean {
  const body = event.event as Json | null;
  const data = body?.['data'] as Json | undefined;
  const isFigures = (event.type === MEDIA && event.subtype === STATISTICS) || (event.type === SERVER && body?.['status'] === 'update');
  return isFigures || body?.['admin_api'] === true || data?.['admin_api'] === true;
}

function isWanted(event: ServerEvent): boolean {
  if (!noiseBox.checked && isNoise(event)) return false;
  const label = KINDS.find(([number]) => number === event.type)?.[1];
  const box = element('kinds').querySelector<HTMLInputElement>(`input[value="${label}"]`);
  const session = sessionInput.value.trim();
  return (
    (!box || box.checked) &&
    (!session || String(event.session_id ?? '') === session) &&
    (!pluginSelect.value || pluginOf(event) === pluginSelect.value)
  );
}

/** A plugin that events came of can be chosen. */
function offer(plugin: string | undefined): void {
  if (!plugin || [...pluginSelect.options].some(({ value }) => value === plugin)) return;
  pluginSelect.append(new Option(short(plugin), plugin));
}

function row(event: ServerEvent): HTMLElement {
  const item = make('li', { testid: 'event' });
  const details = make('details');
  const summary = make('summary');
  const at = new Date(event.timestamp / 1000);
  const time = make('time', { text: at.toLocaleTimeString(undefined, { hour12: false }) + `.${String(at.getMilliseconds()).padStart(3, '0')}` });
  time.dateTime = at.toISOString();
  summary.append(time, make('strong', { text: kindName(event.type) }), make('span', { text: inShort(event) }));
  details.append(summary);
  // The body is rendered when somebody opens it.
  details.addEventListener('toggle', () => details.open && fill(details, event), { once: true });
  item.append(details);
  return item;
}

function fill(details: HTMLElement, event: ServerEvent): void {
  if (event.session_id !== undefined && event.handle_id !== undefined) {
    const link = make('a', { text: `Handle ${event.handle_id} of session ${event.session_id}` });
    link.href = `connection.html?${new URLSearchParams({ session: String(event.session_id), handle: String(event.handle_id) })}`;
    details.append(link);
  }
  const text = make('pre', { text: JSON.stringify(event, null, 2) });
  text.tabIndex = 0;
  details.append(text);
}

function tellCount(): void {
  const shown = list.children.length;
  const parts = [`${shown} shown`];
  if (paused && fresh.length > 0) parts.push(`${fresh.length} have come meanwhile`);
  if (dropped > 0) parts.push(`${dropped} older ones thrown away`);
  element('count').textContent = parts.join(', ');
  element('none').hidden = shown > 0;
  element('none').textContent = kept.length > 0 ? 'None of those that came fits.' : 'None has come yet.';
}

function status(text: string): void {
  element('status').textContent = text;
}
