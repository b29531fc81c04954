// WHIP and WHEP as an application would write them, in a page. Runs in the browser; `window.httpMedia` in tests.

type Kind = 'audio' | 'video';

interface Options {
  token?: string;
  /** A video codec such as `VP8`. */
  codec?: string;
  simulcast?: boolean;
}

class Refused extends Error {
  constructor(readonly status: number, detail: string) {
    super(`${status}: ${detail}`);
  }
}

class HttpMedia {
  readonly peer = new RTCPeerConnection();
  resource = '';
  etag = '';
  links = '';

  private constructor(private readonly token?: string) {}

  /** Publishes a moving picture and a tone. */
  static async publish(endpoint: string, { token, codec, simulcast = false }: Options = {}): Promise<HttpMedia> {
    const media = new HttpMedia(token);
    const capture = await navigator.mediaDevices.getUserMedia({ audio: true, video: { width: 640, height: 360 } });
    for (const track of capture.getTracks()) {
      const encodings =
        simulcast && track.kind === 'video'
          ? [{ rid: 'h' }, { rid: 'm', scaleResolutionDownBy: 2 }, { rid: 'l', scaleResolutionDownBy: 4 }]
          : undefined;
      const transceiver = media.peer.addTransceiver(track, { direction: 'sendonly', sendEncodings: encodings });
      if (track.kind === 'video') prefer(transceiver, RTCRtpSender.getCapabilities('video'), codec);
    }
    await media.offer(endpoint);
    return media;
  }

  /** Plays what is published. */
  static async play(endpoint: string, { token, codec }: Options = {}): Promise<HttpMedia> {
    const media = new HttpMedia(token);
    media.show();
    for (const kind of ['audio', 'video'] as const) {
      const transceiver = media.peer.addTransceiver(kind, { direction: 'recvonly' });
      if (kind === 'video') prefer(transceiver, RTCRtpReceiver.getCapabilities('video'), codec);
    }
    await media.offer(endpoint);
    return media;
  }

  /** Plays by an offer of the server's. */
  static async playOffered(endpoint: string): Promise<HttpMedia> {
    const media = new HttpMedia();
    media.show();
    const offer = await media.request(endpoint, 'POST', {});
    media.made(offer, endpoint);
    await media.answer(await offer.text());
    return media;
  }

  /** Plays with a codec that the stream does not have: the server refuses, and offers what it has. */
  static async playCounterOffer(endpoint: string, codec: string): Promise<number> {
    const media = new HttpMedia();
    media.show();
    prefer(media.peer.addTransceiver('video', { direction: 'recvonly' }), RTCRtpReceiver.getCapabilities('video'), codec, true);
    await media.peer.setLocalDescription();
    const response = await fetch(endpoint, {
      method: 'POST',
      headers: { 'Content-Type': 'application/sdp' },
      body: media.peer.localDescription?.sdp,
    });
    if (response.status !== 406) return response.status;
    const other = new HttpMedia();
    other.show();
    other.made(response, endpoint);
    await other.answer(await response.text());
    return response.status;
  }

  /** New addresses and credentials while media goes on (RFC 9725 section 4.3.3). */
  async restart(): Promise<void> {
    const before = this.peer.currentRemoteDescription?.sdp ?? '';
    this.peer.restartIce();
    const offer = await this.peer.createOffer();
    await this.peer.setLocalDescription(offer);
    const lines = (offer.sdp ?? '').split('\r\n');
    const first = (start: string) => lines.find((line) => line.startsWith(start)) ?? '';
    const fragment = [first('a=group:BUNDLE'), first('m='), first('a=mid:'), first('a=ice-ufrag:'), first('a=ice-pwd:'), ''].join('\r\n');
    const answer = await this.request(this.resource, 'PATCH', { 'Content-Type': 'application/trickle-ice-sdpfrag', 'If-Match': '*' }, fragment);
    if (answer.status !== 200) throw new Error(`status ${answer.status}`);
    this.etag = answer.headers.get('etag') ?? '';
    const text = (await answer.text()).split('\r\n');
    const value = (start: string) => text.find((line) => line.startsWith(start)) ?? '';
    const sdp = before
      .replace(/a=ice-ufrag:.*/g, value('a=ice-ufrag:').trim())
      .replace(/a=ice-pwd:.*/g, value('a=ice-pwd:').trim());
    await this.peer.setRemoteDescription({ type: 'answer', sdp });
  }

  /** Sends a candidate; gives the status. */
  async trickle(candidate: string, etag = this.etag): Promise<number> {
    const sdp = this.peer.localDescription?.sdp ?? '';
    const ufrag = /a=ice-ufrag:.*/.exec(sdp)?.[0] ?? '';
    const pwd = /a=ice-pwd:.*/.exec(sdp)?.[0] ?? '';
    const fragment = `${ufrag}\r\n${pwd}\r\nm=audio 9 UDP/TLS/RTP/SAVPF 0\r\na=mid:0\r\na=${candidate}\r\n`;
    const response = await fetch(this.resource, {
      method: 'PATCH',
      headers: { 'Content-Type': 'application/trickle-ice-sdpfrag', 'If-Match': etag, ...this.authorization() },
      body: fragment,
    });
    return response.status;
  }

  async end(): Promise<number> {
    const response = await fetch(this.resource, { method: 'DELETE', headers: this.authorization() });
    this.peer.close();
    return response.status;
  }

  private async offer(endpoint: string): Promise<void> {
    await this.peer.setLocalDescription();
    const answer = await this.request(endpoint, 'POST', { 'Content-Type': 'application/sdp' }, this.peer.localDescription?.sdp);
    this.made(answer, endpoint);
    await this.peer.setRemoteDescription({ type: 'answer', sdp: await answer.text() });
  }

  private async answer(sdp: string): Promise<void> {
    await this.peer.setRemoteDescription({ type: 'offer', sdp });
    await this.peer.setLocalDescription();
    await this.request(this.resource, 'PATCH', { 'Content-Type': 'application/sdp' }, this.peer.localDescription?.sdp);
  }

  private made(response: Response, endpoint: string): void {
    this.resource = new URL(response.headers.get('location') ?? '', endpoint).href;
    this.etag = response.headers.get('etag') ?? '';
    this.links = response.headers.get('link') ?? '';
  }

  private async request(url: string, method: string, headers: Record<string, string>, body?: string): Promise<Response> {
    const response = await fetch(url, { method, headers: { ...headers, ...this.authorization() }, body });
    if (!response.ok) throw new Refused(response.status, ((await response.json()) as { detail: string }).detail);
    return response;
  }

  private authorization(): Record<string, string> {
    return this.token ? { Authorization: `Bearer ${this.token}` } : {};
  }

  /** Decoders run for what is shown only. */
  private show(): void {
    this.peer.addEventListener('track', ({ track }) => {
      const element = document.createElement(track.kind as Kind);
      element.autoplay = true;
      element.muted = true;
      element.srcObject = new MediaStream([track]);
      document.body.append(element);
    });
  }
}

function prefer(transceiver: RTCRtpTransceiver, capabilities: RTCRtpCapabilities | null, name?: string, only = false): void {
  if (!name || !capabilities) return;
  const is = ({ mimeType }: { mimeType: string }) => mimeType.toLowerCase() === `video/${name.toLowerCase()}`;
  const rest = only ? [] : capabilities.codecs.filter((codec) => !is(codec));
  transceiver.setCodecPreferences([...capabilities.codecs.filter(is), ...rest]);
}

Object.assign(window, { HttpMedia });
