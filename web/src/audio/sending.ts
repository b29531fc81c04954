// The own sound: where it comes from, how loud it is, and whether it is sent.
import { CaptureError, listDevices, open, openDevice, type Capture } from '../capture';
import { Level } from '../level';
import { choose, element, type PageOptions } from '../page';

export class Sending {
  private readonly fields = element('sound-fields');
  private readonly source = element<HTMLSelectElement>('source');
  private readonly microphone = element<HTMLSelectElement>('microphone');
  private readonly kind = element<HTMLSelectElement>('kind');
  private capture: Capture | null = null;
  private level: Level | null = null;
  private muted = false;

  /** `changed` is called when the user has chosen another source. */
  constructor(options: PageOptions, changed: () => void) {
    choose(this.source, options.source);
    for (const select of [this.source, this.microphone, this.kind]) {
      select.addEventListener('change', () => {
        this.showFields();
        changed();
      });
    }
    navigator.mediaDevices?.addEventListener?.('devicechange', () => void this.refreshMicrophones());
    this.showFields();
    void this.refreshMicrophones();
  }

  /** The track being sent, or null. */
  get track(): MediaStreamTrack | null {
    return this.capture?.stream.getAudioTracks()[0] ?? null;
  }

  /** Whether the user wants to listen only. */
  get silent(): boolean {
    return this.source.value === 'none';
  }

  /** Opens what the form says, in the place of what was open. */
  async open(): Promise<void> {
    const capture = await this.openSource();
    this.close();
    this.capture = capture;
    this.mute(this.muted);
    if (this.track) this.level = new Level(capture.stream, element<HTMLMeterElement>('level'));
    element('level-field').hidden = !this.track;
    void this.refreshMicrophones();
  }

  /** A muted microphone goes on, but nothing of it leaves the page. */
  mute(muted: boolean): void {
    this.muted = muted;
    if (this.track) this.track.enabled = !muted;
  }

  listenOnly(): void {
    this.source.value = 'none';
    this.showFields();
  }

  close(): void {
    this.level?.close();
    this.level = null;
    for (const track of this.capture?.stream.getTracks() ?? []) track.stop();
    this.capture?.close();
    this.capture = null;
  }

  /** Where the fields are: before the room, or in it. */
  moveFields(to: HTMLElement): void {
    to.append(this.fields);
  }

  private async openSource(): Promise<Capture> {
    const options = { width: 16, height: 16, camera: '', microphone: this.microphone.value, music: this.kind.value === 'music' };
    switch (this.source.value) {
      case 'none':
        return open('none', options);
      case 'synthetic': {
        const all = await open('synthetic', options);
        for (const track of all.stream.getVideoTracks()) track.stop();
        return { ...all, stream: new MediaStream(all.stream.getAudioTracks()) };
      }
      default: {
        const { microphones } = await listDevices();
        if (window.isSecureContext && navigator.mediaDevices && microphones.length === 0) {
          throw new CaptureError('missing', 'No microphone was found on this device. Plug one in, or go on without.');
        }
        return { stream: new MediaStream([await openDevice('audio', options)]), remark: '', close: () => {} };
      }
    }
  }

  private showFields(): void {
    for (const id of ['microphone-field', 'kind-field']) element(id).hidden = this.source.value !== 'devices';
  }

  private async refreshMicrophones(): Promise<void> {
    const chosen = this.microphone.value;
    const { microphones } = await listDevices();
    const named = microphones.filter(({ deviceId }) => deviceId !== '');
    this.microphone.replaceChildren(
      new Option('Default microphone', ''),
      ...named.map(({ label, deviceId }, index) => new Option(label || `Microphone ${index + 1}`, deviceId)),
    );
    choose(this.microphone, chosen);
  }
}
