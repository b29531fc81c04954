// The pictures and sounds of a mountpoint, one for each stream.

export class Tiles {
  private readonly tiles = new Map<string, HTMLElement>();
  private readonly sounds = new MediaStream();
  private readonly sound = document.createElement('audio');

  constructor(private readonly root: HTMLElement) {
    this.sound.autoplay = true;
    this.sound.controls = true;
    this.sound.dataset['testid'] = 'sound';
    this.sound.setAttribute('aria-label', 'Sound');
  }

  /** A track came or went. */
  track(track: MediaStreamTrack, on: boolean, mid: string, label: string): void {
    if (track.kind === 'audio') return this.audio(track, on);
    if (!on) {
      this.tiles.get(mid)?.remove();
      this.tiles.delete(mid);
      return;
    }
    let figure = this.tiles.get(mid);
    if (!figure) {
      figure = document.createElement('figure');
      const caption = document.createElement('figcaption');
      caption.textContent = label;
      figure.append(video(label), caption);
      this.tiles.set(mid, figure);
      this.root.prepend(figure);
    }
    play(figure.querySelector('video'), new MediaStream([track]));
  }

  clear(): void {
    for (const figure of this.tiles.values()) figure.remove();
    this.tiles.clear();
    for (const track of this.sounds.getTracks()) this.sounds.removeTrack(track);
    this.sound.srcObject = null;
    this.sound.remove();
  }

  private audio(track: MediaStreamTrack, on: boolean): void {
    if (on) this.sounds.addTrack(track);
    else this.sounds.removeTrack(track);
    if (this.sounds.getTracks().length === 0) return this.sound.remove();
    this.root.append(this.sound);
    play(this.sound, this.sounds);
  }
}

function video(label: string): HTMLVideoElement {
  const element = document.createElement('video');
  element.autoplay = true;
  element.playsInline = true;
  element.muted = true;
  element.dataset['testid'] = 'video';
  element.setAttribute('aria-label', `Picture: ${label}`);
  return element;
}

function play(element: HTMLMediaElement | null, stream: MediaStream): void {
  if (!element) return;
  element.srcObject = stream;
  // A refusal to start is not a fault: it starts with the user's next touch.
  element.play().catch(() => {});
}
