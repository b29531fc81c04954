// The pictures of a room, in a grid or with the one who speaks large, each with its figures and its choice of layers.
import { ReceivedLayers } from '../controls';
import { choose } from '../page';
import type { Answer } from './api';
import { make } from '../make';
import { Plot } from '../plot';
import { bitrate } from '../units';
import type { StreamFigures } from './rates';

export type View = 'grid' | 'speaker';

/** How a picture is layered; none if there is but one. */
export type Layering = 'simulcast' | 'svc' | null;

export interface TileOptions {
  key: string;
  name: string;
  own: boolean;
  layering: Layering;
  muted: boolean;
  /** Others were shown on its line before, with wishes of their own. */
  seated: boolean;
}

/** Members of a `configure` request. */
type LayerSettings = Record<string, number | string>;

export interface GridActions {
  /** Asks for layers of the picture with this key, and whether it comes before others. */
  layers(key: string, settings: LayerSettings): void;
}

const LEVELS = ['Low', 'Medium', 'High'];
const HIGHEST = 2;

export class Grid {
  private readonly tiles = new Map<string, Tile>();
  private mode: View = 'grid';
  /** The one that the user wants to see large. */
  private pinned: string | null = null;
  private speaking: string | null = null;

  constructor(private readonly root: HTMLElement, private readonly actions: GridActions) {}

  /** Shows these, in this order; those that stay keep their pictures. */
  show(wanted: TileOptions[]): void {
    const keys = new Set(wanted.map(({ key }) => key));
    for (const [key, tile] of this.tiles) {
      if (keys.has(key)) continue;
      tile.remove();
      this.tiles.delete(key);
      if (this.pinned === key) this.pinned = null;
      if (this.speaking === key) this.speaking = null;
    }
    for (const options of wanted) {
      let tile = this.tiles.get(options.key);
      if (!tile) {
        tile = new Tile(options, {
          layers: (settings) => this.actions.layers(options.key, settings),
          enlarge: () => this.enlarge(options.key),
        });
        this.tiles.set(options.key, tile);
        this.root.append(tile.root);
      }
      tile.update(options);
    }
    this.arrange();
  }

  track(key: string, track: MediaStreamTrack | null): void {
    this.tiles.get(key)?.track(track);
  }

  layers(key: string, event: Answer): void {
    this.tiles.get(key)?.received(event);
  }

  figures(key: string, figures: StreamFigures | undefined): void {
    this.tiles.get(key)?.figures(figures);
  }

  /** Whose voice is the loudest: a prefix of the keys of their pictures. */
  speaker(prefix: string | null): void {
    const key = [...this.tiles.keys()].find((key) => prefix !== null && key.startsWith(prefix)) ?? null;
    for (const [name, tile] of this.tiles) tile.root.classList.toggle('talking', prefix !== null && name.startsWith(prefix));
    if (key === null || key === this.speaking) return;
    this.speaking = key;
    this.arrange();
  }

  view(mode: View): void {
    this.mode = mode;
    this.root.dataset['view'] = mode;
    if (mode === 'grid') this.pinned = null;
    this.arrange();
  }

  /** Asks anew for the layers that were chosen, after a connection was made anew. */
  repeatLayers(): void {
    for (const tile of this.tiles.values()) tile.forgetLayers();
    this.arrange();
  }

  clear(): void {
    this.show([]);
  }

  private enlarge(key: string): void {
    this.pinned = this.pinned === key ? null : key;
    this.arrange();
  }

  /** In the view of the speaker one is large; of the others the smallest layer will do. */
  private arrange(): void {
    const others = [...this.tiles].find(([, tile]) => !tile.own)?.[0];
    const large = this.pinned ?? (this.mode === 'speaker' ? (this.speaking ?? others ?? this.tiles.keys().next().value ?? null) : null);
    for (const [key, tile] of this.tiles) {
      tile.size(key === large, this.pinned === key, large !== null && this.mode === 'speaker' && key !== large);
    }
  }
}

class Tile {
  readonly root = make('figure', { className: 'tile empty' });
  readonly own: boolean;
  private readonly video = make('video', { testid: 'video' });
  private readonly caption = make('figcaption', { testid: 'name' });
  private readonly text = make('p', { className: 'tile-figures soft', testid: 'figures' });
  private readonly bitrate = new Plot('bitrate', 'Bitrate', 'plot-bitrate');
  private readonly loss = new Plot('loss', 'Loss', 'plot-loss');
  private readonly controls = make('div', { className: 'row' });
  private readonly large = make('button', { text: 'Large', testid: 'enlarge' });
  private readonly spatial = layerSelect('size');
  private readonly temporal = layerSelect('rate');
  private layering: Layering = null;
  private seated = false;
  private layersReceived = new ReceivedLayers();
  private layerText = '';
  private small = false;
  /** It comes before the others where there is not enough for all. */
  private first = false;
  /** The last request, so that none is repeated. */
  private asked = '';

  constructor({ own }: TileOptions, private readonly actions: { layers(settings: LayerSettings): void; enlarge(): void }) {
    this.own = own;
    this.video.autoplay = true;
    this.video.playsInline = true;
    // Sound is played apart from the pictures.
    this.video.muted = true;
    this.large.type = 'button';
    this.large.addEventListener('click', () => actions.enlarge());
    for (const select of [this.spatial, this.temporal]) select.addEventListener('change', () => this.ask());
    const picture = make('div', { className: 'picture' });
    picture.append(this.video, this.caption);
    this.controls.append(this.large, this.spatial, this.temporal);
    const plots = make('div', { className: 'plots' });
    plots.append(this.bitrate.root, this.loss.root);
    this.root.append(picture, this.text, plots, this.controls);
  }

  update({ name, layering, muted, key, seated }: TileOptions): void {
    this.seated = seated;
    this.root.dataset['testid'] = `tile-${name}`;
    this.root.dataset['key'] = key;
    this.caption.textContent = muted ? `${name} (muted)` : name;
    this.video.setAttribute('aria-label', `Picture of ${name}`);
    this.large.setAttribute('aria-label', `Show ${name} large`);
    this.spatial.setAttribute('aria-label', `Picture size of ${name}`);
    this.temporal.setAttribute('aria-label', `Frame rate of ${name}`);
    this.bitrate.name = `${name}, bitrate`;
    this.loss.name = `${name}, loss`;
    this.layering = layering;
    this.spatial.hidden = this.temporal.hidden = layering === null;
  }

  track(track: MediaStreamTrack | null): void {
    this.root.classList.toggle('empty', track === null);
    if ((this.video.srcObject as MediaStream | null)?.getTracks()[0] === track) return;
    this.video.srcObject = track && new MediaStream([track]);
    // A refusal to start is not a fault: it starts with the user's next touch.
    if (track) this.video.play().catch(() => {});
    this.ask();
  }

  received(event: Answer): void {
    this.layerText = this.layersReceived.update(event) ?? this.layerText;
  }

  figures(figures: StreamFigures | undefined): void {
    this.bitrate.add(figures?.bitrate);
    this.loss.add(figures?.loss);
    if (!figures) return void (this.text.textContent = '');
    const rate = figures.bitrate === undefined ? undefined : bitrate(figures.bitrate);
    const parts = [figures.codec, figures.size, figures.rate, rate, this.layerText && `layer ${this.layerText}`];
    this.text.textContent = parts.filter(Boolean).join(' · ');
  }

  size(large: boolean, pinned: boolean, small: boolean): void {
    this.root.classList.toggle('large', large);
    this.large.setAttribute('aria-pressed', String(pinned));
    this.small = small;
    this.first = large;
    this.ask();
  }

  forgetLayers(): void {
    this.asked = '';
    this.layerText = '';
    this.layersReceived = new ReceivedLayers();
  }

  remove(): void {
    this.video.srcObject = null;
    this.root.remove();
  }

  private ask(): void {
    if (this.layering === null || this.own || !this.video.srcObject) return;
    const spatial = this.spatial.value === '' ? (this.small ? 0 : HIGHEST) : Number(this.spatial.value);
    const temporal = this.temporal.value === '' ? HIGHEST : Number(this.temporal.value);
    const layers: LayerSettings =
      this.layering === 'svc' ? { spatial_layer: spatial, temporal_layer: temporal } : { substream: spatial, temporal };
    const settings = { ...layers, priority: this.first ? 'high' : 'low' };
    const text = JSON.stringify(settings);
    // The highest layers and a low priority are what a stream begins with.
    const begins = this.asked === '' && !this.seated && !this.first && spatial === HIGHEST && temporal === HIGHEST;
    if (text === this.asked || begins) return;
    this.asked = text;
    this.actions.layers(settings);
  }
}

function layerSelect(of: 'size' | 'rate'): HTMLSelectElement {
  const select = make('select', { testid: `layer-${of}` });
  select.append(new Option(`Any ${of}`, ''), ...LEVELS.map((level, index) => new Option(`${level} ${of}`, String(index))));
  choose(select, '');
  return select;
}
