// The controls that work during a call: muting, bitrate, layers, text, restart.
import { element, notice } from './page';
import type { Call } from './call';

/** Sends settings to the plugin in its own words. */
export type Configure = (settings: Record<string, unknown>) => Promise<void>;

export interface ControlOptions {
  call: () => Call | null;
  configure: Configure;
  /** Sends the offer of an ICE restart. */
  restart: (call: Call) => Promise<void>;
}

/** Layers as the plugin names them: simulcast has `substream` and `temporal`, SVC `spatial_layer` and `temporal_layer`. */
export type LayerKind = 'simulcast' | 'svc';

export class Controls {
  private readonly root = element('controls');
  private readonly layers = element('layers');
  private readonly bitrate = element<HTMLSelectElement>('bitrate');
  private readonly log = element('text-log');
  private layerKind: LayerKind = 'simulcast';

  constructor(private readonly options: ControlOptions) {
    this.toggle('mute-audio', 'audio');
    this.toggle('mute-video', 'video');
    this.bitrate.addEventListener('change', () => this.run(this.options.configure({ bitrate: this.bitrateCap })));
    element('restart').addEventListener('click', () => {
      const call = this.options.call();
      if (call) this.run(this.options.restart(call));
    });
    for (const button of this.layers.querySelectorAll<HTMLButtonElement>('button')) {
      button.addEventListener('click', () => this.wish(button));
    }
    element<HTMLFormElement>('text-form').addEventListener('submit', (event) => {
      event.preventDefault();
      const input = element<HTMLInputElement>('text-input');
      const text = input.value.trim();
      const call = this.options.call();
      if (!text || !call) return;
      this.run(call.text(text).then(() => this.line('sent', text)));
      input.value = '';
    });
    this.stop();
  }

  /** bit/s; 0 is no cap. */
  get bitrateCap(): number {
    return Number(this.bitrate.value) * 1000;
  }

  start(): void {
    this.root.hidden = false;
    this.enableText(false);
    this.showLayers(null);
    for (const id of ['mute-audio', 'mute-video']) this.press(element<HTMLButtonElement>(id), false);
    this.log.replaceChildren();
  }

  stop(): void {
    this.root.hidden = true;
    this.showLayers(null);
  }

  enableText(on: boolean): void {
    for (const id of ['text-input', 'text-send']) element<HTMLInputElement>(id).disabled = !on;
  }

  received(data: unknown): void {
    this.line('received', typeof data === 'string' ? data : `${(data as ArrayBuffer).byteLength} bytes`);
  }

  /** Shows the buttons of the layers that can be asked for. */
  showLayers(kind: LayerKind | null): void {
    this.layers.hidden = kind === null;
    if (kind) this.layerKind = kind;
    for (const button of this.layers.querySelectorAll<HTMLButtonElement>('button')) this.press(button, false);
  }

  private wish(button: HTMLButtonElement): void {
    const level = Number(button.dataset['level']);
    const spatial = button.dataset['layer'] === 'spatial';
    const name = this.layerKind === 'svc' ? (spatial ? 'spatial_layer' : 'temporal_layer') : spatial ? 'substream' : 'temporal';
    for (const other of this.layers.querySelectorAll<HTMLButtonElement>(`[data-layer="${button.dataset['layer']}"]`)) {
      this.press(other, other === button);
    }
    this.run(this.options.configure({ [name]: level }));
  }

  private toggle(id: string, medium: 'audio' | 'video'): void {
    const button = element<HTMLButtonElement>(id);
    button.addEventListener('click', () => {
      const muted = button.getAttribute('aria-pressed') !== 'true';
      this.press(button, muted);
      this.run(this.options.configure({ [medium]: !muted }));
    });
  }

  private press(button: HTMLButtonElement, pressed: boolean): void {
    button.setAttribute('aria-pressed', String(pressed));
  }

  private line(direction: 'sent' | 'received', text: string): void {
    const item = document.createElement('p');
    item.className = direction;
    item.textContent = text;
    this.log.append(item);
    while (this.log.childElementCount > 100) this.log.firstElementChild?.remove();
    this.log.scrollTop = this.log.scrollHeight;
  }

  private run(work: Promise<void>): void {
    work.catch((error: unknown) => notice('error', `That did not work: ${String(error)}`));
  }
}

const LEVELS = ['low', 'medium', 'high'];

/** Which layers arrive, as the plugin's events tell it bit by bit. */
/** Why a layer arrives, in words; see the table of reasons in docs/bandwidth.md. */
const REASONS: Record<string, string> = {
  best: 'all that is sent',
  'client-bound': 'as chosen',
  bandwidth: 'more would not fit the link',
  least: 'the least there is',
  holding: 'more is tried later',
  'emptying-queue': 'the link is catching up',
  priority: 'others come first',
  paused: 'the link does not carry it',
  unmeasured: 'it has just begun',
  silent: 'the higher one does not come',
  keyframe: 'waiting for a keyframe',
};

export class ReceivedLayers {
  private spatial?: number;
  private temporal?: number;

  /** Takes in an event; gives the layers in words, or undefined if the event says nothing of layers. */
  update(event: Record<string, unknown>): string | undefined {
    const spatial = event['substream'] ?? event['spatial_layer'];
    const temporal = event['temporal'] ?? event['temporal_layer'];
    if (typeof spatial === 'number') this.spatial = spatial;
    else if (typeof temporal !== 'number') return undefined;
    if (typeof temporal === 'number') this.temporal = temporal;
    const parts = [];
    if (this.spatial !== undefined) parts.push(`${LEVELS[this.spatial] ?? ''} (${this.spatial})`);
    if (this.temporal !== undefined) parts.push(`temporal ${this.temporal}`);
    const reason = REASONS[String(event['reason'])];
    return parts.join(', ') + (reason === undefined ? '' : `: ${reason}`);
  }
}
