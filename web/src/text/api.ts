// Messages of the text room, as far as the page reads them.
import { explainMissing, explainWrong, Refused, type Id } from '../answer';
import type { ListedRoom } from '../lobby';

/** A room as `list` tells it. */
export interface Listed extends ListedRoom {
  history: number;
}

export interface Member {
  username: string;
  display?: string;
}

/** Something that happened in a room. */
export interface TextEvent {
  textroom: 'join' | 'leave' | 'kicked' | 'message' | 'announcement' | 'destroyed';
  room: Id;
  username?: string;
  display?: string;
  from?: string;
  date?: string;
  text?: string;
  whisper?: boolean;
}

/** The plugin's codes that the page treats apart. */
export const CODES = { missing: 413, invalid: 414, noRoom: 417, unauthorized: 419, nameTaken: 420, notInRoom: 422, noUser: 423, other: 499 } as const;

/** Why something was refused, in words for the user. */
export function explain(error: unknown): string {
  if (!(error instanceof Refused)) return error instanceof Error ? error.message : String(error);
  switch (error.code) {
    case CODES.noRoom:
      return 'There is no such room. It may have been closed.';
    case CODES.nameTaken:
      return 'Somebody in the room has this name. Choose another.';
    case CODES.notInRoom:
      return 'You are no longer in the room.';
    case CODES.noUser:
      return 'They are not in the room any more.';
    case CODES.unauthorized:
      return explainWrong(error.message);
    case CODES.missing: {
      const missing = explainMissing(error.message);
      if (missing) return missing;
      break;
    }
    case CODES.other:
      if (/too much/i.test(error.message)) return 'You write faster than the server allows. Wait for a moment.';
      break;
  }
  return `The server says: ${error.message} (${error.code})`;
}
