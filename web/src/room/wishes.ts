// Which layers of the others' pictures are asked for: high ones of large pictures, low ones of small and unseen pictures.

/** How a picture is layered; null if there is but one layer. */
export type Layering = 'simulcast' | 'svc' | null;

/** The layers that the user has chosen; undefined: whatever fits. */
export interface Chosen {
  spatial?: number;
  temporal?: number;
}

/** A picture that may be asked for. */
export interface Wanted extends Chosen {
  key: string;
  layering: Layering;
  /** It comes before the others. */
  large: boolean;
  /** The lowest layer will do. */
  small: boolean;
  /** Others were received on its line before, with wishes of their own. */
  seated: boolean;
}

/** Members of a `configure` request. */
type Settings = Record<string, number | string>;

const HIGHEST = 2;

export class Wishes {
  /** The last request for each picture. */
  private readonly asked = new Map<string, string>();

  constructor(private readonly ask: (key: string, settings: Settings) => void) {}

  /** Asks for what is wanted of these pictures, where that has changed. */
  update(pictures: Wanted[]): void {
    for (const picture of pictures) {
      if (picture.layering === null) continue;
      const spatial = picture.spatial ?? (picture.small ? 0 : HIGHEST);
      const temporal = picture.temporal ?? HIGHEST;
      const layers: Settings = picture.layering === 'svc' ? { spatial_layer: spatial, temporal_layer: temporal } : { substream: spatial, temporal };
      const settings = { ...layers, priority: picture.large ? 'high' : 'low' };
      const text = JSON.stringify(settings);
      const before = this.asked.get(picture.key);
      // A stream starts with the highest layers and a low priority.
      const isDefault = before === undefined && !picture.seated && !picture.large && spatial === HIGHEST && temporal === HIGHEST;
      if (text === before || isDefault) continue;
      this.asked.set(picture.key, text);
      this.ask(picture.key, settings);
    }
    const known = new Set(pictures.map(({ key }) => key));
    for (const key of this.asked.keys()) if (!known.has(key)) this.asked.delete(key);
  }

  /** The connection is a new one: all is asked for again. */
  forget(): void {
    this.asked.clear();
  }
}
