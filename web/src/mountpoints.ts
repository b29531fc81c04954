// The list of mountpoints: what there is, whether media comes in, and how to feed it.
import { feeds, hasMore, unfed, type Feed, type MountpointInfo, type StreamInfo } from './feed';
import { make } from './make';
import { showPublisher } from './publisher';
import { below } from './session';

/** A mountpoint as `list` tells it. */
export interface Listed {
  id: number | string;
  description: string;
  type: string;
  enabled: boolean;
  metadata?: string;
  media?: ListedStream[];
}

/** A stream of a mountpoint, as `list` tells it. */
interface ListedStream extends StreamInfo {
  /** Milliseconds since a packet was taken; none while nobody publishes and no RTSP server is connected. */
  age_ms?: number;
  /** Nothing has come so far: `age_ms` is the time since the beginning. */
  waiting?: boolean;
  /** Why the last refused packet was refused, and its age in ms. */
  refused?: { reason: string; packets: number; age_ms: number };
}

export interface ListActions {
  play(mountpoint: Listed, pin?: string): void;
  /** Asks for all about a mountpoint. */
  info(mountpoint: Listed, secret?: string): Promise<MountpointInfo>;
}

/** Media that has not come for this long counts as away, in milliseconds. */
const AWAY = 2000;

export class MountpointList {
  private readonly rows = new Map<string, Row>();

  constructor(
    private readonly root: HTMLElement,
    private readonly none: HTMLElement,
    private readonly actions: ListActions,
  ) {}

  /** Shows what there is; rows stay where they are, with what is open in them. */
  show(list: Listed[]): void {
    const seen = new Set<string>();
    for (const mountpoint of [...list].sort((a, b) => String(a.id).localeCompare(String(b.id), undefined, { numeric: true }))) {
      const key = String(mountpoint.id);
      seen.add(key);
      let row = this.rows.get(key);
      if (!row) {
        row = new Row(mountpoint, this.actions);
        this.rows.set(key, row);
      }
      row.update(mountpoint);
      if (this.root.children[seen.size - 1] !== row.root) this.root.insertBefore(row.root, this.root.children[seen.size - 1] ?? null);
    }
    for (const [key, row] of this.rows) {
      if (seen.has(key)) continue;
      row.root.remove();
      this.rows.delete(key);
    }
    this.none.hidden = seen.size > 0;
  }

  /** Marks the one that is played. */
  playing(id: number | string | null): void {
    for (const [key, row] of this.rows) row.playing(id !== null && key === String(id));
  }

  /** Opens what tells how a mountpoint is fed. */
  showFeeds(id: number | string): void {
    this.rows.get(String(id))?.openFeeds();
  }

  /** Asks for the pin of a mountpoint. */
  askPin(id: number | string): void {
    this.rows.get(String(id))?.askPin();
  }
}

class Row {
  readonly root = document.createElement('li');
  private readonly title = make('strong');
  private readonly state = make('span', { className: 'soft', testid: 'state' });
  private readonly play = make('button', { className: 'primary', text: 'Play', testid: 'play' });
  private readonly pin = make('input', { testid: 'pin' });
  private readonly pinForm = make('form', { className: 'text-form' });
  private readonly feed = make('details');
  private readonly feedBody = make('div', { className: 'stack' });
  private readonly publisher = make('div');
  private current: Listed;
  /** What feeds it, asked for once; undefined while it is not known. */
  private kind: string | undefined;

  constructor(mountpoint: Listed, private readonly actions: ListActions) {
    this.current = mountpoint;
    this.root.dataset['testid'] = `mountpoint-${mountpoint.id}`;
    this.play.type = 'button';
    this.play.addEventListener('click', () => this.actions.play(this.current));
    this.buildPin();
    const summary = make('summary', { text: 'How to feed it', testid: 'feed' });
    this.feed.append(summary, this.feedBody);
    this.feed.addEventListener('toggle', () => {
      if (this.feed.open) void this.showFeeds();
    });
    const head = make('div', { className: 'row' });
    const words = make('div', { className: 'grow' });
    words.append(this.title, document.createElement('br'), this.state);
    head.append(words, this.play);
    this.root.append(head, this.pinForm, this.feed);
  }

  update(mountpoint: Listed): void {
    this.current = mountpoint;
    this.title.textContent = `${mountpoint.description} (${mountpoint.id})`;
    this.state.textContent = stateOf(mountpoint, this.kind);
    if (this.kind === undefined) void this.askKind();
    this.play.setAttribute('aria-label', `Play ${mountpoint.description}`);
  }

  /** The list does not say what feeds a mountpoint. */
  private async askKind(): Promise<void> {
    this.kind = '';
    try {
      const info = await this.actions.info(this.current);
      this.kind = info.rtsp ? 'rtsp' : info.whip ? 'whip' : info.type;
      this.update(this.current);
    } catch {
      // It stays unknown.
    }
  }

  playing(on: boolean): void {
    this.root.classList.toggle('playing', on);
    this.play.disabled = on;
    if (on) this.pinForm.hidden = true;
  }

  openFeeds(): void {
    this.feed.open = true;
  }

  askPin(): void {
    this.pinForm.hidden = false;
    this.pin.focus();
  }

  private buildPin(): void {
    this.pinForm.hidden = true;
    this.pin.autocomplete = 'off';
    this.pin.setAttribute('aria-label', `PIN of ${this.current.description}`);
    this.pin.placeholder = 'PIN';
    const go = make('button', { text: 'Play with this PIN', testid: 'use-pin' });
    this.pinForm.append(this.pin, go);
    this.pinForm.addEventListener('submit', (event) => {
      event.preventDefault();
      this.actions.play(this.current, this.pin.value);
    });
  }

  private async showFeeds(secret?: string): Promise<void> {
    try {
      const info = await this.actions.info(this.current, secret);
      const { hostname } = window.location;
      const origin = below('').href.replace(/\/$/, '');
      const ways = feeds(info, { origin, host: hostname.replace(/^\[|\]$/g, '') });
      const shown = ways.length > 0 ? ways.map(block) : [make('p', { className: 'soft', text: unfed(info), testid: 'unfed' })];
      if (info.whip) showPublisher(this.publisher, info.id, { required: info.token_required === true, known: info.token ?? info.secret ?? '' });
      this.feedBody.replaceChildren(...(info.whip ? [this.publisher] : []), ...shown, ...(hasMore(info) ? [this.askSecret()] : []));
    } catch (error) {
      this.feedBody.replaceChildren(make('p', { text: `That cannot be told: ${String(error)}` }));
    }
  }

  private askSecret(): HTMLElement {
    const form = make('form', { className: 'text-form' });
    const input = make('input', { testid: 'secret' });
    input.type = 'password';
    input.autocomplete = 'off';
    input.placeholder = 'Secret';
    input.setAttribute('aria-label', `Secret of ${this.current.description}`);
    form.append(input, make('button', { text: 'Show', testid: 'use-secret' }));
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      void this.showFeeds(input.value);
    });
    return form;
  }
}

/** One way to feed it, with a button that copies the line. */
function block({ tool, line, note }: Feed): HTMLElement {
  const root = make('div', { className: 'feed' });
  const head = make('div', { className: 'row' });
  const copy = make('button', { text: 'Copy' });
  copy.type = 'button';
  copy.dataset['testid'] = `copy-${tool.toLowerCase()}`;
  copy.setAttribute('aria-label', `Copy the line for ${tool}`);
  copy.addEventListener('click', () => void copyText(line, copy));
  head.append(make('strong', { className: 'grow', text: tool }), copy);
  const code = make('pre', { text: line });
  code.dataset['testid'] = `line-${tool.toLowerCase()}`;
  code.tabIndex = 0;
  root.append(head, code);
  if (note) root.append(make('p', { className: 'soft', text: note }));
  return root;
}

async function copyText(text: string, button: HTMLButtonElement): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = 'Copied';
  } catch {
    // Pages that are not from https: or localhost may not write to the clipboard: the line is marked for copying by hand.
    const line = button.closest('.feed')?.querySelector('pre');
    if (line) window.getSelection()?.selectAllChildren(line);
    button.textContent = 'Marked';
  }
  setTimeout(() => (button.textContent = 'Copy'), 2000);
}

/** Reasons for refusing packets, by the server's name. */
const CAUSES: Record<string, string> = {
  malformed: 'they are not RTP',
  unauthentic: 'the SRTP key does not fit, or they are not SRTP',
  foreign: 'another sender holds the port',
  too_long: 'they are longer than 1800 bytes',
  overrun: 'more than the server takes',
};

/** Whether all that came of a stream lately was refused. */
function isRefused({ age_ms, waiting, refused }: ListedStream): boolean {
  const isTaken = !waiting && (age_ms ?? AWAY) < AWAY;
  return refused !== undefined && refused.age_ms < AWAY && !isTaken;
}

/** Why there is no source, by the kind of the mountpoint. */
const NO_SOURCE: Record<string, string> = {
  rtsp: 'no source: its RTSP server is not connected',
  whip: 'no source: nobody publishes',
};

function stateOf({ type, enabled, media = [] }: Listed, kind = ''): string {
  const kinds = media.map((stream) => stream.label || stream.type).join(', ');
  const ages = media.flatMap((stream) => (stream.waiting ? [] : (stream.age_ms ?? [])));
  const youngest = ages.length > 0 ? Math.min(...ages) : undefined;
  let flow = type;
  const refused = media.find(isRefused)?.refused;
  if (!enabled) flow = 'disabled';
  else if (refused) flow = `packets come, but are refused: ${CAUSES[refused.reason] ?? refused.reason}`;
  else if (youngest !== undefined) flow = youngest < AWAY ? 'media comes in' : `no media for ${duration(youngest)}`;
  else if (media.some((stream) => stream.waiting)) flow = 'waits for media: nothing has come so far';
  // Files have no streams in the list, and ports an age from the start.
  else if (media.length > 0) flow = NO_SOURCE[kind] ?? 'no source';
  return [flow, kinds].filter(Boolean).join(' · ');
}

function duration(milliseconds: number): string {
  const seconds = Math.round(milliseconds / 1000);
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 120 ? `${minutes} min` : `${Math.round(minutes / 60)} h`;
}
