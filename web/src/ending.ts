// Why PeerConnections end: what the server's `hangup` says, of which janus.js passes on a part only.

/** The end of a PeerConnection. */
export interface Ending {
  reason: string;
  /** The server's code of why ICE failed, and a sentence that says what to change. */
  cause?: string;
  text?: string;
}

/** By handle; the last one of each. */
const endings = new Map<string, Ending>();
/** The server ends all calls: nothing is wrong with the network. */
let leaving = '';
/** Sessions that the server has ended. */
const over = new Set<string>();

/** Reads a message of the server, or some of them, before janus.js does. */
export function noteEnding(message: unknown): void {
  if (Array.isArray(message)) return message.forEach(noteEnding);
  const { janus, sender, reason, cause, text, session_id } = (message ?? {}) as Record<string, string | undefined>;
  if (janus === 'timeout') over.add(String(session_id));
  if (janus !== 'hangup') return;
  endings.set(String(sender), { reason: reason ?? 'Unknown', cause, text });
  if (reason === 'Server drained' || reason === 'Server shutdown') leaving = reason;
}

/** Returns why the PeerConnection of a handle ended. The reason is the browser's if the server said nothing. */
export function endingOf(handle: number | string, reason?: string): Ending {
  const known = endings.get(String(handle));
  endings.delete(String(handle));
  return known ?? { reason: reason ?? 'no reason given' };
}

/** Whether the server has said that it ended a session. */
export function isOver(session: string): boolean {
  return over.has(session);
}

/** The server takes sessions. */
export function noteWelcome(): void {
  leaving = '';
}

/** Returns why the server has ended its sessions, in words for the user, if it said so. */
export function whyServerLeaves(): string {
  if (leaving === 'Server drained') return 'The server is being drained: it has ended its calls and takes nobody new. Try again later.';
  return leaving && 'The server was shut down, and cannot be reached.';
}

/** Whether somebody wanted the end: this page, the plugin or the other side. */
export function wasWanted({ reason }: Ending): boolean {
  return ['Close PC', 'Janus API', 'Detach', 'DTLS alert'].includes(reason);
}

/** Returns what happened, in words for the user, and the sentence that the server's log has. */
export function explainEnding(ending: Ending): string {
  return [whatEnded(ending), ending.text].filter(Boolean).join(' ');
}

function whatEnded({ reason, cause }: Ending): string {
  switch (reason) {
    case 'ICE failed':
      return cause === 'connection-lost' ? 'The connection was lost.' : 'No media could be exchanged with the server.';
    case 'DTLS failed':
      return 'Media reaches the server, but encryption could not be set up.';
    case 'DTLS alert':
      return 'The browser has closed the connection.';
    case 'Server shutdown':
    case 'Server drained':
      return whyServerLeaves();
    case 'Internal error':
      return 'The server had a fault of its own: its log says which.';
    case 'Close PC':
      return 'The server has ended the call.';
  }
  return `The connection has ended (${reason}).`;
}
