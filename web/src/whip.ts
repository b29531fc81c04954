// Publishes to a mountpoint from this browser, by WHIP.
import { below } from './session';

/** How long candidates are waited for, in ms. */
const GATHERING = 2_000;

export class Publication {
  private constructor(
    private readonly connection: RTCPeerConnection,
    private readonly resource: URL,
    private readonly token: string,
  ) {}

  /** Sends the tracks; `ended` is called with a reason if it ends without `stop`. */
  static async start(id: number | string, token: string, stream: MediaStream, ended: (why: string) => void): Promise<Publication> {
    const connection = new RTCPeerConnection();
    try {
      for (const track of stream.getTracks()) connection.addTransceiver(track, { direction: 'sendonly', streams: [stream] });
      await connection.setLocalDescription();
      await gathered(connection);
      const endpoint = below(`whip/${encodeURIComponent(String(id))}`);
      const response = await fetch(endpoint, {
        method: 'POST',
        headers: { 'Content-Type': 'application/sdp', ...bearer(token) },
        body: connection.localDescription?.sdp ?? '',
      });
      const text = await response.text();
      if (!response.ok) throw new Error(refusal(response.status, text));
      await connection.setRemoteDescription({ type: 'answer', sdp: text });
      connection.addEventListener('connectionstatechange', () => {
        if (connection.connectionState === 'failed' || connection.connectionState === 'closed') ended('The connection has ended.');
      });
      const location = new URL(response.headers.get('Location') ?? '', endpoint);
      // A proxy may have put the server into a folder, of which it does not know.
      return new Publication(connection, location.pathname.startsWith('/whip/') ? below(location.pathname) : location, token);
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  /** Whether media can flow. */
  get state(): RTCPeerConnectionState {
    return this.connection.connectionState;
  }

  stop(): void {
    this.connection.close();
    void fetch(this.resource, { method: 'DELETE', headers: bearer(this.token), keepalive: true }).catch(() => {});
  }
}

function bearer(token: string): Record<string, string> {
  return token ? { Authorization: `Bearer ${token}` } : {};
}

function gathered(connection: RTCPeerConnection): Promise<void> {
  return new Promise((done) => {
    const look = (): void => void (connection.iceGatheringState === 'complete' && done());
    connection.addEventListener('icegatheringstatechange', look);
    setTimeout(done, GATHERING);
    look();
  });
}

function refusal(status: number, text: string): string {
  switch (status) {
    case 401:
    case 403:
      return 'The token is missing or wrong.';
    case 404:
      return 'The mountpoint is gone.';
    case 409:
      return 'Somebody else publishes to it.';
    case 503:
      return 'The server is being drained, or full. Try again later.';
  }
  return `The server refused it: ${text || status}`;
}
