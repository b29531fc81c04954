// The two pictures: what is sent and what comes back.
import { element } from './page';

export class Stage {
  private readonly local = new Tile(element<HTMLVideoElement>('local-video'));
  private readonly remote = new Tile(element<HTMLVideoElement>('remote-video'));

  constructor() {
    const button = element('fullscreen');
    button.hidden = !document.fullscreenEnabled;
    // A browser that refuses says so by itself.
    button.addEventListener('click', () => void element('pictures').requestFullscreen().catch(() => {}));
  }

  localTrack(track: MediaStreamTrack, on: boolean): void {
    this.local.set(track, on);
  }

  remoteTrack(track: MediaStreamTrack, on: boolean): void {
    this.remote.set(track, on);
  }

  clear(): void {
    this.local.clear();
    this.remote.clear();
  }
}

class Tile {
  private stream = new MediaStream();

  constructor(private readonly video: HTMLVideoElement) {}

  set(track: MediaStreamTrack, on: boolean): void {
    if (on) this.stream.addTrack(track);
    else this.stream.removeTrack(track);
    // Setting it anew makes browsers notice that a track came or went.
    this.video.srcObject = this.stream.getTracks().length > 0 ? this.stream : null;
    this.video.parentElement?.classList.toggle('empty', this.stream.getVideoTracks().length === 0);
    // A refusal to start is not a fault: the picture starts with the user's next touch.
    if (on) this.video.play().catch(() => {});
  }

  clear(): void {
    this.stream = new MediaStream();
    this.video.srcObject = null;
    this.video.parentElement?.classList.add('empty');
  }
}
