// The list of mountpoints: what there is, whether media comes in, and how to feed it.
import { render, type Ref } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { feeds, hasMore, unfed, type Feed, type MountpointInfo, type StreamInfo } from './feed';
import { Icon } from './icon';
import { Publisher } from './publisher';
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
  private list: Listed[] = [];
  private played: string | null = null;
  private words = 'Playing';
  /** The mountpoint whose PIN is asked for, and those of which it is shown how they are fed. */
  private asked: string | null = null;
  private readonly opened = new Set<string>();

  constructor(
    private readonly root: HTMLElement,
    private readonly none: HTMLElement,
    private readonly actions: ListActions,
  ) {}

  show(list: Listed[]): void {
    this.list = [...list].sort((a, b) => String(a.id).localeCompare(String(b.id), undefined, { numeric: true }));
    this.draw();
  }

  /** Marks the one that is played. */
  playing(id: number | string | null, words = 'Playing'): void {
    const played = id === null ? null : String(id);
    if (played === this.played && words === this.words) return;
    this.played = played;
    this.words = words;
    if (this.played === this.asked) this.asked = null;
    this.draw();
  }

  /** Opens what tells how a mountpoint is fed. */
  showFeeds(id: number | string): void {
    this.opened.add(String(id));
    this.draw();
  }

  /** Asks for the pin of a mountpoint. */
  askPin(id: number | string): void {
    this.asked = String(id);
    this.draw();
  }

  private draw(): void {
    this.none.hidden = this.list.length > 0;
    const rows = this.list.map((mountpoint) => {
      const id = String(mountpoint.id);
      const state = { isPlayed: id === this.played, words: this.words, asksPin: id === this.asked, isOpen: this.opened.has(id) };
      return <Row key={id} mountpoint={mountpoint} {...state} actions={this.actions} />;
    });
    render(<>{rows}</>, this.root);
  }
}

interface RowProps {
  mountpoint: Listed;
  isPlayed: boolean;
  /** What its button says while it is played. */
  words: string;
  asksPin: boolean;
  isOpen: boolean;
  actions: ListActions;
}

function Row({ mountpoint, isPlayed, words, asksPin, isOpen, actions }: RowProps) {
  const { id, description } = mountpoint;
  // The list does not say what feeds a mountpoint.
  const [kind, setKind] = useState('');
  const [info, setInfo] = useState<MountpointInfo | string | null>(null);
  const pin = useRef<HTMLInputElement>(null);
  useEffect(() => {
    // It stays unknown if that cannot be told.
    actions.info(mountpoint).then((info) => setKind(info.rtsp ? 'rtsp' : info.whip ? 'whip' : info.type), () => {});
  }, []);
  useEffect(() => {
    if (asksPin) pin.current?.focus();
  }, [asksPin]);
  const ask = (secret?: string): void => {
    actions.info(mountpoint, secret).then(setInfo, (error: unknown) => setInfo(`That cannot be told: ${String(error)}`));
  };
  return (
    <li data-testid={`mountpoint-${id}`} class={isPlayed ? 'playing' : ''}>
      <div class="row">
        <div class="grow">
          <strong>{description} ({id})</strong>
          <br />
          <span class={`soft dot ${colourOf(mountpoint)}`} data-testid="state">{stateOf(mountpoint, kind)}</span>
        </div>
        <button type="button" class={colourOf(mountpoint) === 'good' ? 'primary' : ''} data-testid="play" disabled={isPlayed} aria-label={`Play ${description}`} onClick={() => actions.play(mountpoint)}><Icon name="play" /> {isPlayed ? words : 'Play'}</button>
      </div>
      <TextForm hidden={!asksPin} field="pin" label={`PIN of ${description}`} text="PIN" button="Play with this PIN" input={pin} use={(entered) => actions.play(mountpoint, entered)} />
      <details open={isOpen} onToggle={(event) => event.currentTarget.open && ask()}>
        <summary data-testid="feed">{kind === 'whip' ? 'Publish to it: from this browser, OBS, …' : 'How to feed it'}</summary>
        {info !== null && <div class="stack">{typeof info === 'string' ? <p>{info}</p> : <Feeds info={info} description={description} ask={ask} />}</div>}
      </details>
    </li>
  );
}

function Feeds({ info, description, ask }: { info: MountpointInfo; description: string; ask(secret: string): void }) {
  const ways = feeds(info, { origin: below('').href.replace(/\/$/, ''), host: window.location.hostname.replace(/^\[|\]$/g, '') });
  return (
    <>
      {info.whip && <Publisher id={info.id} token={{ required: info.token_required === true, known: info.token ?? info.secret ?? '' }} />}
      {ways.map((way) => <Way key={way.tool} {...way} />)}
      {ways.length === 0 && <p class="soft" data-testid="unfed">{unfed(info)}</p>}
      {hasMore(info) && <TextForm field="secret" label={`Secret of ${description}`} text="Secret" button="Show" use={ask} />}
    </>
  );
}

interface TextFormProps {
  field: 'pin' | 'secret';
  label: string;
  text: string;
  button: string;
  hidden?: boolean;
  input?: Ref<HTMLInputElement>;
  use(entered: string): void;
}

function TextForm({ field, label, text, button, hidden, input, use }: TextFormProps) {
  const [entered, setEntered] = useState('');
  return (
    <form class="text-form" hidden={hidden} onSubmit={(event) => (event.preventDefault(), use(entered))}>
      <input
        ref={input}
        data-testid={field}
        type={field === 'secret' ? 'password' : 'text'}
        autocomplete="off"
        placeholder={text}
        aria-label={label}
        value={entered}
        onInput={(event) => setEntered(event.currentTarget.value)}
      />
      <button data-testid={`use-${field}`}>{button}</button>
    </form>
  );
}

/** One way to feed it, with a button that copies the line. */
function Way({ tool, line, note }: Feed) {
  const [words, setWords] = useState('Copy');
  const code = useRef<HTMLPreElement>(null);
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(line);
      setWords('Copied');
    } catch {
      // Pages that are not from https: or localhost may not write to the clipboard: the line is marked for copying by hand.
      if (code.current) window.getSelection()?.selectAllChildren(code.current);
      setWords('Marked');
    }
    setTimeout(() => setWords('Copy'), 2000);
  };
  return (
    <div class="feed">
      <div class="row">
        <strong class="grow">{tool}</strong>
        <button type="button" data-testid={`copy-${tool.toLowerCase()}`} aria-label={`Copy the line for ${tool}`} onClick={() => void copy()}>{words}</button>
      </div>
      <pre ref={code} data-testid={`line-${tool.toLowerCase()}`} tabIndex={0}>{line}</pre>
      {note && <p class="soft">{note}</p>}
    </div>
  );
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

/** Whether media comes in. */
export function isLive(mountpoint: Listed): boolean {
  return colourOf(mountpoint) === 'good';
}

/** Whether media comes in, as a colour. */
function colourOf({ enabled, media = [] }: Listed): 'good' | 'wait' | 'bad' | '' {
  if (!enabled) return '';
  if (media.some(isRefused)) return 'bad';
  if (media.some(({ waiting, age_ms }) => !waiting && age_ms !== undefined && age_ms < AWAY)) return 'good';
  // Of files the list has no streams: they play when somebody watches.
  return media.length > 0 ? 'wait' : 'good';
}

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
