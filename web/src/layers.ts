// The choice of a layer for each stream that has some, and which layers arrive.
import { ReceivedLayers } from './controls';
import type { StreamInfo } from './feed';

/** Sends a `configure` request. */
type Configure = (settings: Record<string, unknown>) => void;

const LEVELS = ['Low', 'Medium', 'High'];

export class LayerChoice {
  private received = new Map<string, ReceivedLayers>();

  constructor(private readonly root: HTMLElement, private readonly configure: Configure) {}

  /** Shows buttons for the streams with layers. */
  show(streams: StreamInfo[]): void {
    this.received = new Map();
    const layered = streams.filter((stream) => stream.videosimulcast || stream.videosvc);
    this.root.hidden = layered.length === 0;
    const several = layered.length > 1;
    this.root.replaceChildren(
      ...layered.flatMap((stream) => {
        const name = (word: string) => (several ? `${stream.label ?? stream.mid}: ${word}` : word);
        const svc = !!stream.videosvc;
        return [
          this.group(stream, name('Size'), svc ? 'spatial_layer' : 'substream'),
          this.group(stream, name('Rate'), svc ? 'temporal_layer' : 'temporal'),
        ];
      }),
    );
  }

  /** Takes in an event of the plugin; gives the layers in words if it says something of them. */
  update(event: Record<string, unknown>): string | undefined {
    const mid = String(event['mid'] ?? '');
    let received = this.received.get(mid);
    if (!received) {
      received = new ReceivedLayers();
      this.received.set(mid, received);
    }
    return received.update(event);
  }

  private group(stream: StreamInfo, label: string, field: string): HTMLElement {
    const root = document.createElement('div');
    root.className = 'row';
    root.role = 'group';
    root.setAttribute('aria-label', label);
    const words = document.createElement('span');
    words.className = 'label';
    words.textContent = label;
    const buttons = LEVELS.map((name, level) => {
      const button = document.createElement('button');
      button.type = 'button';
      button.textContent = name;
      button.dataset['testid'] = `${field}-${level}`;
      button.setAttribute('aria-pressed', 'false');
      button.addEventListener('click', () => {
        for (const other of buttons) other.setAttribute('aria-pressed', String(other === button));
        this.configure({ mid: stream.mid, [field]: level });
      });
      return button;
    });
    root.append(words, ...buttons);
    return root;
  }
}
