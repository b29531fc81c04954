// Who gets what is said in a room besides those who are in it: told in the lobby and in the room.
import { make } from './make';

/** As the server tells it of a room, in its list and with its participants. */
export interface Standing {
  /** The room is recorded. */
  record?: boolean;
  listening_in?: { recordings?: number; forwarders?: number; captures?: number; viewers?: number };
}

/** Returns what is told of a room, each in some words. */
export function listeners({ record, listening_in: others = {} }: Standing): { id: string; text: string; short: string }[] {
  const { recordings = 0, forwarders = 0, captures = 0, viewers = 0 } = others;
  const told = [
    { id: 'recording', is: record || recordings > 0, text: '● Recording', short: 'recorded' },
    { id: 'forwarding', is: forwarders > 0, text: 'Sent on to another program', short: 'sent on to another program' },
    { id: 'capturing', is: captures > 0, text: 'Listened in on by an administrator', short: 'listened in on by an administrator' },
    { id: 'viewing', is: viewers > 0, text: `${viewers} more can hear and see`, short: `${viewers} more can hear and see` },
  ];
  return told.filter(({ is }) => is);
}

/** The same as elements for the head of a room. */
export function badges(standing: Standing): HTMLElement[] {
  return listeners(standing).map(({ id, text }) => make('span', { className: 'badge danger', text, testid: id }));
}
