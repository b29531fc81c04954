// The form in which the user chooses what to send, and the capture that comes of it.
import { CaptureError, listDevices, open, type Capture, type CaptureOptions, type SourceKind } from './capture';
import { choose, clearNotice, element, notice, type PageOptions } from './page';
import type { SendOptions } from './call';

/** The selects of the form `#setup`. */
export class Setup {
  private readonly camera = element<HTMLSelectElement>('camera');
  private readonly microphone = element<HTMLSelectElement>('microphone');
  private readonly source = element<HTMLSelectElement>('source');
  private readonly size = element<HTMLSelectElement>('size');
  private readonly codec = element<HTMLSelectElement>('codec');
  private readonly sending = element<HTMLSelectElement>('sending');

  constructor(options: PageOptions) {
    this.offerCodecs();
    choose(this.source, options.source);
    choose(this.codec, options.codec);
    choose(this.sending, options.sending);
    choose(this.size, options.size);
    this.source.addEventListener('change', () => this.showDevices());
    navigator.mediaDevices?.addEventListener?.('devicechange', () => void this.refreshDevices());
    void this.refreshDevices();
    this.showDevices();
  }

  get videoCodec(): string {
    return this.codec.value;
  }

  get sendOptions(): SendOptions {
    const value = this.sending.value;
    return { simulcast: value === 'simulcast', svc: value === 'simulcast' ? '' : value };
  }

  get captureOptions(): CaptureOptions {
    const [width = 1280, height = 720] = this.size.value.split('x').map(Number);
    return { width, height, camera: this.camera.value, microphone: this.microphone.value };
  }

  /** Calls when another microphone or camera was chosen. */
  onDevice(chosen: (kind: 'audio' | 'video') => void): void {
    this.microphone.addEventListener('change', () => chosen('audio'));
    this.camera.addEventListener('change', () => chosen('video'));
  }

  /** Shows the choice of devices in another place, where it can be changed while they are in use. */
  moveDevices(to: HTMLElement): void {
    to.prepend(...document.querySelectorAll<HTMLElement>('[data-for="devices"]'));
  }

  /**
   * Opens what the form says. If camera and microphone cannot be had, says why, offers to go on without them
   * (`retry` is then called), and gives null.
   */
  async capture(retry: () => void): Promise<Capture | null> {
    clearNotice();
    try {
      const capture = await open(this.source.value as SourceKind, this.captureOptions);
      if (capture.remark) notice('info', capture.remark);
      // Device names are known only once permission was given.
      void this.refreshDevices();
      return capture;
    } catch (error) {
      if (!(error instanceof CaptureError)) throw error;
      const goOn = (source: SourceKind) => () => {
        this.source.value = source;
        this.showDevices();
        retry();
      };
      notice('warning', error.message, [
        { label: 'Try again', id: 'retry', run: retry },
        { label: 'Use a synthetic picture and tone', id: 'use-synthetic', run: goOn('synthetic') },
        { label: 'Only receive', id: 'use-none', run: goOn('none') },
      ]);
      return null;
    }
  }

  private showDevices(): void {
    const hidden = this.source.value !== 'devices';
    for (const row of document.querySelectorAll<HTMLElement>('[data-for="devices"]')) row.hidden = hidden;
  }

  private async refreshDevices(): Promise<void> {
    const { cameras, microphones } = await listDevices();
    fill(this.camera, cameras, 'Camera');
    fill(this.microphone, microphones, 'Microphone');
  }

  /** Only codecs that this browser can encode. */
  private offerCodecs(): void {
    const known = RTCRtpSender.getCapabilities?.('video')?.codecs.map((codec) => codec.mimeType.toLowerCase());
    if (!known) return;
    for (const option of [...this.codec.options]) {
      if (option.value && !known.includes(`video/${option.value}`)) option.remove();
    }
  }
}

function fill(select: HTMLSelectElement, devices: MediaDeviceInfo[], kind: string): void {
  const chosen = select.value;
  const options = devices
    .filter((device) => device.deviceId !== '')
    .map((device, index) => new Option(device.label || `${kind} ${index + 1}`, device.deviceId));
  select.replaceChildren(new Option(`Default ${kind.toLowerCase()}`, ''), ...options);
  choose(select, chosen);
}
