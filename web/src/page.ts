// Common parts of all pages: finding elements, showing notices, reading options from the address.
import { AccessDenied } from './access';
import { explainEnding, whyServerLeaves, type Ending } from './ending';
import type { SourceKind } from './capture';
import type { Transport } from './session';

/** The element with this id; a missing one is a fault of the page itself. */
export function element<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`The page has no element #${id}`);
  return found as T;
}

// On a narrow screen the links to the pages are in a menu. The dashboard has two links, and none.
const menu = document.getElementById('menu');
if (menu) {
  const open = (is: boolean) => menu.setAttribute('aria-expanded', String(is));
  menu.addEventListener('click', () => open(menu.getAttribute('aria-expanded') !== 'true'));
  document.addEventListener('click', ({ target }) => target instanceof Element && !target.closest('header') && open(false));
  document.addEventListener('keydown', ({ key }) => key === 'Escape' && open(false));
}

// Where there is room, what would be folded is open.
const wide = window.matchMedia('(min-width: 60rem)').matches;
for (const details of document.querySelectorAll<HTMLDetailsElement>('details[data-wide]')) details.open = wide;

/** Says what the page does. */
export function status(text: string): void {
  const root = element('status');
  root.textContent = text;
  root.classList.remove('idle');
}

/** Says that the page waits for its user, which the page shows by itself: screen readers hear it. */
export function idle(text: string): void {
  status(text);
  element('status').classList.add('idle');
}

/** Shows whether a button is pressed, and what it does now. */
export function press(button: HTMLElement, pressed: boolean, text?: string): void {
  button.setAttribute('aria-pressed', String(pressed));
  const words = button.querySelector('.text');
  if (text && words) words.textContent = text;
}

/** The page shows a call, or what it needs for the next one. */
export function showCall(live: boolean): void {
  document.querySelector('main')?.classList.toggle('live', live);
}

export interface NoticeAction {
  label: string;
  id: string;
  run(): void;
}

/** Shown in a page of another site, or by `?embed=1`: what leads elsewhere is left out. */
document.body.classList.toggle('embedded', window.top !== window || new URLSearchParams(window.location.search).get('embed') === '1');

/** For how long a notice without a need to act covers the room, in ms. */
const COVERS = 8_000;
let covering: ReturnType<typeof setTimeout> | undefined;

/** Tells the user something, in a region that screen readers announce; a later notice replaces it. */
export function notice(kind: 'info' | 'warning' | 'error', text: string, actions: NoticeAction[] = []): void {
  const root = element('notice');
  root.className = `notice ${kind}`;
  root.hidden = false;
  const message = document.createElement('p');
  message.textContent = text;
  const buttons = actions.map(({ label, id, run }) => {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = label;
    button.dataset['testid'] = id;
    button.addEventListener('click', run);
    return button;
  });
  const row = document.createElement('div');
  row.className = 'row';
  row.append(...buttons);
  const close = document.createElement('button');
  close.type = 'button';
  close.className = 'close';
  close.textContent = '✕';
  close.title = close.ariaLabel = 'Close';
  close.addEventListener('click', clearNotice);
  root.replaceChildren(message, ...(buttons.length > 0 ? [row] : []), close);
  clearTimeout(covering);
  // It lies over the pictures there.
  if (kind === 'info' && buttons.length === 0) covering = setTimeout(() => document.body.classList.contains('in-meeting') && clearNotice(), COVERS);
}

/** Tells the user why a call or its connection ended, and what may help. `again` tries once more. */
export function endNotice(what: string, ending: Ending, again?: NoticeAction): void {
  notice('error', [what, explainEnding(ending)].filter(Boolean).join(' '), again ? [again] : []);
  if (!/^(ICE|DTLS) failed|^no reason/.test(ending.reason)) return;
  const link = document.createElement('a');
  link.href = 'check.html';
  link.textContent = 'Check the connection from here';
  link.dataset['testid'] = 'to-check';
  element('notice').querySelector('.close')?.before(link);
}

/** What is being connected again, and since when, in ms. */
const missing = new Map<string, number>();
/** After how long it is told what is missing, in ms. */
const LONG = 5_000;
let telling: ReturnType<typeof setTimeout> | undefined;

/** Shows that something of the page is being connected again, or no longer. */
export function reconnecting(what: string, on: boolean): void {
  if (!on) missing.delete(what);
  else if (!missing.has(what)) missing.set(what, Date.now());
  clearTimeout(telling);
  if (missing.size > 0) telling = setTimeout(() => reconnecting(what, missing.has(what)), LONG);
  let shown = document.getElementById('reconnecting');
  if (!shown) {
    if (missing.size === 0) return;
    shown = document.createElement('p');
    shown.id = 'reconnecting';
    shown.dataset['testid'] = 'reconnecting';
    shown.setAttribute('role', 'status');
    document.body.append(shown);
  }
  shown.hidden = missing.size === 0;
  shown.textContent = missing.size === 0 ? '' : `Reconnecting…${whyLong()}`;
}

function whyLong(): string {
  const long = [...missing].filter(([, since]) => Date.now() - since >= LONG - 50).map(([what]) => what);
  if (long.length === 0) return '';
  return long.every((what) => what.startsWith('call')) ? ' No media comes through so far.' : ' The server does not answer so far.';
}

export function clearNotice(): void {
  const root = element('notice');
  root.hidden = true;
  root.replaceChildren();
}

/** Options that a link may preset, for example `?codec=vp9&svc=L3T3&size=1280x720&transport=http`. */
export interface PageOptions {
  codec: string;
  audioCodec: string;
  sending: string;
  size: string;
  source: SourceKind;
  transport: Transport;
  bitrate: string;
  name: string;
}

export function pageOptions(): PageOptions {
  const query = new URLSearchParams(window.location.search);
  const text = (key: string, otherwise = '') => query.get(key) ?? otherwise;
  const oneOf = <T extends string>(key: string, values: readonly T[]): T => {
    const value = query.get(key);
    return values.find((known) => known === value) ?? (values[0] as T);
  };
  return {
    codec: text('codec').toLowerCase(),
    audioCodec: text('audiocodec').toLowerCase(),
    sending: query.get('simulcast') === '1' ? 'simulcast' : text('svc'),
    size: text('size', '1280x720'),
    source: oneOf('source', ['devices', 'synthetic', 'none']),
    transport: oneOf('transport', ['auto', 'ws', 'http']),
    bitrate: text('bitrate', '0'),
    name: text('name'),
  };
}

/** Chooses an option of a select if it has it. */
export function choose(select: HTMLSelectElement, value: string): void {
  if ([...select.options].some((option) => option.value === value)) select.value = value;
}

/** Why the API cannot be reached, in words for the user. */
export function serverAway(reason: unknown): string {
  if (reason instanceof AccessDenied) return reason.message;
  const detail = reason instanceof Error ? reason.message : String(reason);
  if (/being drained/.test(detail)) return 'The server is being drained: it takes nobody new. Try again later, or use another server.';
  if (/^No such session/.test(detail)) return 'The server was started anew, and no longer knows this page.';
  const leaves = whyServerLeaves();
  if (leaves) return leaves;
  return `The server cannot be reached. Is it running? (${detail})`;
}
