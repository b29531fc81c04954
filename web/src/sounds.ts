// The sounds of a room, each in an element of its own that is not seen.

export class Sounds {
  private readonly elements = new Map<string, HTMLAudioElement>();

  /** `blocked` is called when the browser waits for a touch of the user before it plays. */
  constructor(private readonly root: HTMLElement, private readonly blocked: () => void) {}

  play(key: string, track: MediaStreamTrack): void {
    let audio = this.elements.get(key);
    if (!audio) {
      audio = document.createElement('audio');
      audio.autoplay = true;
      this.elements.set(key, audio);
      this.root.append(audio);
    }
    if ((audio.srcObject as MediaStream | null)?.getTracks()[0] === track) return;
    audio.srcObject = new MediaStream([track]);
    audio.play().catch((error: unknown) => {
      if (error instanceof DOMException && error.name === 'NotAllowedError') this.blocked();
    });
  }

  /** Plays what the browser has held back. */
  resume(): void {
    for (const audio of this.elements.values()) audio.play().catch(() => {});
  }

  /** Only these go on. */
  keep(keys: Set<string>): void {
    for (const [key, audio] of this.elements) {
      if (keys.has(key)) continue;
      audio.srcObject = null;
      audio.remove();
      this.elements.delete(key);
    }
  }
}
