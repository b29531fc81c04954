// Messages of the audio bridge, as far as the page reads them.
import { explainMissing, explainWrong, Refused, type Answer, type Id } from '../answer';
import type { Plugin } from '../exchange';
import type { ListedRoom } from '../lobby';

/** A room as `list` tells it. */
export interface Listed extends ListedRoom {
  sampling_rate: number;
  spatial_audio: boolean;
  muted: boolean;
  num_listeners?: number;
}

export interface Participant {
  id: Id;
  display?: string;
  /** Its media flows. */
  setup: boolean;
  muted: boolean;
  talking?: boolean;
  suspended?: boolean;
  /** From 0, left, to 100, right; in rooms with places. */
  spatial_position?: number;
}

/** The plugin's codes that the page treats apart. */
export const CODES = { missing: 483, invalid: 484, noRoom: 485, notJoined: 487, unauthorized: 489, taken: 490, noUser: 492, noGroup: 494, other: 499 } as const;

export const AUDIO_BRIDGE: Plugin = {
  name: 'janus.plugin.audiobridge',
  isAnswer: (data: Answer) =>
    data['error_code'] !== undefined ||
    data['result'] === 'ok' ||
    data['audiobridge'] === 'left' ||
    (data['audiobridge'] === 'joined' && data['id'] !== undefined),
};

/** Whether a room asks for a group. */
export function asksForGroup(error: unknown): boolean {
  return error instanceof Refused && (error.code === CODES.noGroup || (error.code === CODES.missing && /group/i.test(error.message)));
}

/** Why something was refused, in words for the user. */
export function explain(error: unknown): string {
  if (!(error instanceof Refused)) return error instanceof Error ? error.message : String(error);
  if (error.code === CODES.noGroup) return 'The room has no such group. Ask whoever runs it for the names.';
  if (asksForGroup(error)) return 'The people in this room are in groups. Enter the name of yours.';
  switch (error.code) {
    case CODES.noRoom:
      return 'There is no such room. It may have been closed.';
    case CODES.notJoined:
      return 'You are no longer in the room.';
    case CODES.noUser:
      return 'They are not in the room any more.';
    case CODES.unauthorized:
      return explainWrong(error.message);
    case CODES.other:
      if (/opening file/i.test(error.message)) return 'The server cannot play this file. It has to be Ogg Opus, in a folder that audiobridge.folders names.';
      break;
    case CODES.missing: {
      const missing = explainMissing(error.message);
      if (missing) return missing;
      break;
    }
  }
  return `The server says: ${error.message} (${error.code})`;
}
