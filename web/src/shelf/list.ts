// The recordings of the server: what they are, how they look, and what can be done with them.
import { make, makeButton } from '../make';
import { clock } from '../position';
import { bytes } from '../units';

/** A recording as the server lists it. */
export interface Recorded {
  id: number;
  /** The node of a cluster that has it, and that node's address. */
  node?: string;
  node_url?: string;
  name: string;
  date: string;
  audio: boolean;
  audio_codec?: string;
  video: boolean;
  video_codec?: string;
  /** How long it is, in milliseconds. */
  duration?: number;
  /** All files together. */
  bytes: number;
  /** Where its files are, by what is in them. */
  urls?: Record<string, string>;
  /** Where the files are that it goes on in. */
  parts?: string[];
}

/** The files that a browser can show by itself. */
const SHOWN = /\.(webm|mkv|mp4)$/;

/** Where in a recording its picture is taken, in seconds. */
const PICTURE_AT = 1;

export class RecordingList {
  private readonly items = new Map<string, HTMLElement>();
  /** The node that the page is of. */
  private here: string | undefined;
  /** Pictures are loaded once they are seen. */
  private readonly seen = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) continue;
      this.seen.unobserve(target);
      const picture = target as HTMLVideoElement;
      picture.src = picture.dataset['src'] ?? '';
    }
  });

  constructor(
    private readonly root: HTMLElement,
    private readonly none: HTMLElement,
    private readonly play: (recorded: Recorded) => void,
  ) {}

  /** Shows these, the latest first; what was there before stays as it is. `here` is the node of the page. */
  show(recordings: Recorded[], here?: string): void {
    this.here = here;
    const ids = new Set(recordings.map(keyOf));
    for (const [id, item] of this.items) {
      if (ids.has(id)) continue;
      item.remove();
      this.items.delete(id);
    }
    const sorted = [...recordings].sort((one, other) => one.date.localeCompare(other.date) || one.id - other.id);
    for (const recorded of sorted) {
      let item = this.items.get(keyOf(recorded));
      if (!item) {
        item = this.item(recorded);
        this.items.set(keyOf(recorded), item);
      }
      this.root.prepend(item);
    }
    this.none.hidden = recordings.length > 0;
  }

  /** Marks what is played. */
  playing(recorded: Recorded | null): void {
    for (const [known, item] of this.items) item.classList.toggle('playing', recorded !== null && known === keyOf(recorded));
  }

  private item(recorded: Recorded): HTMLElement {
    const item = make('li', { testid: 'recording' });
    const row = make('div', { className: 'row' });
    const facts = make('div', { className: 'grow' });
    facts.append(make('strong', { text: recorded.name, testid: 'title' }), make('p', { className: 'soft', text: factsOf(recorded), testid: 'facts' }));
    row.append(this.picture(recorded), facts, this.player(recorded));
    item.append(row);
    const links = linksOf(recorded);
    if (links.length > 0) {
      const downloads = make('div', { className: 'row' });
      downloads.append(...links);
      item.append(downloads);
    }
    return item;
  }

  /** The button that plays it here, or the link to the node that has it. */
  private player(recorded: Recorded): HTMLElement {
    const { id, name, node, node_url: url } = recorded;
    if (node === undefined || node === this.here) {
      const play = makeButton('Play', 'play', () => this.play(recorded));
      play.setAttribute('aria-label', `Play ${name}`);
      return play;
    }
    if (!url || !/^https?:/.test(url)) return make('span', { className: 'soft', text: `plays at ${node}`, testid: 'elsewhere' });
    const link = make('a', { text: `Play at ${node}`, testid: 'play-elsewhere' });
    link.href = `${url.replace(/\/+$/, '')}/recordplay.html?play=${id}`;
    link.setAttribute('aria-label', `Play ${name} at ${node}`);
    return link;
  }

  /** A picture of what can be shown, and a sign for the rest. */
  private picture(recorded: Recorded): HTMLElement {
    const url = recorded.urls?.['video'];
    if (!url || !SHOWN.test(url)) return make('span', { className: 'thumb', text: recorded.video ? '🎞' : '🔊', testid: 'icon' });
    const picture = make('video', { className: 'thumb', testid: 'picture' });
    picture.muted = true;
    picture.preload = 'metadata';
    picture.playsInline = true;
    picture.tabIndex = -1;
    picture.setAttribute('aria-hidden', 'true');
    picture.dataset['src'] = `${url}#t=${Math.min(PICTURE_AT, (recorded.duration ?? 0) / 2000)}`;
    this.seen.observe(picture);
    return picture;
  }
}

function factsOf(recorded: Recorded): string {
  const duration = recorded.duration === undefined ? '' : clock(recorded.duration / 1000);
  const codecs = [recorded.video && (recorded.video_codec ?? 'video'), recorded.audio && (recorded.audio_codec ?? 'sound')];
  return [recorded.date, duration, bytes(recorded.bytes), codecs.filter(Boolean).join(', '), recorded.node].filter(Boolean).join(' · ');
}

/** What tells a recording from all others: nodes may give one id each. */
function keyOf({ id, node = '' }: Recorded): string {
  return `${node}/${id}`;
}

/** A link to each file. */
function linksOf({ name, urls = {}, parts = [] }: Recorded): HTMLAnchorElement[] {
  const known = new Set<string>();
  const files = Object.entries(urls).filter(([, url]) => !known.has(url) && known.add(url));
  const first = files.map(([medium, url]): [string, string] => [parts.length > 0 && files.length === 1 ? 'part 1' : medium, url]);
  const own = [...first, ...parts.map((url, index): [string, string] => [`part ${index + 2}`, url])];
  return own.map(([medium, url]) => {
    const link = make('a', { text: own.length > 1 ? `Download ${medium}` : 'Download', testid: 'download' });
    link.href = url;
    link.download = decodeURIComponent(url.slice(url.lastIndexOf('/') + 1));
    link.setAttribute('aria-label', `${link.textContent} of ${name}`);
    return link;
  });
}
