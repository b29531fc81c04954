// Messages of the video room, as far as the page reads them.
import { explainMissing, explainWrong, Refused, type Answer, type Id } from '../answer';
import type { Plugin } from '../exchange';

export { Refused, type Answer, type Id } from '../answer';

/** A stream of a publisher. */
export interface FeedStream {
  type: 'audio' | 'video' | 'data';
  mid: string;
  disabled?: boolean;
  description?: string;
  codec?: string;
  simulcast?: boolean;
  svc?: boolean;
  moderated?: boolean;
}

export interface Feed {
  id: Id;
  display?: string;
  /** A placeholder that sends nothing. */
  dummy?: boolean;
  streams?: FeedStream[];
  metadata?: Doing;
}

/** What the pages tell of their users, besides what they send. */
export interface Doing {
  /** False: muted, or without a picture. */
  audio?: boolean;
  video?: boolean;
  hand?: boolean;
}

/** A room as `list` tells it. */
export interface Listed {
  room: Id;
  description: string;
  pin_required: boolean;
  num_participants: number;
  max_publishers: number;
}

/** A stream that is received: which one of whom, on which m-line. */
export interface Received {
  type: 'audio' | 'video' | 'data';
  active: boolean;
  mid: string;
  feed_id?: Id;
  feed_mid?: string;
}

/** The plugin's codes that the page treats apart. */
export const CODES = { noRoom: 426, noFeed: 428, missing: 429, invalid: 430, full: 432, unauthorized: 433, nothingToOffer: 437 } as const;

/** Why something was refused, in words for the user. */
export function explain(error: unknown): string {
  if (!(error instanceof Refused)) return error instanceof Error ? error.message : String(error);
  switch (error.code) {
    case CODES.noRoom:
      return 'There is no such room. It may have been closed.';
    case CODES.full:
      return 'As many people send here as the room allows. You can watch and read, and send when somebody else stops.';
    case CODES.unauthorized:
      return explainWrong(error.message);
    case CODES.missing: {
      const missing = explainMissing(error.message);
      if (missing) return missing;
      break;
    }
  }
  return `The server says: ${error.message} (${error.code})`;
}

/** The identity of a publisher's stream. */
export function keyOf(feed: Id, mid: string): string {
  return `${feed}/${mid}`;
}

/** The video room's plugin. */
export const VIDEO_ROOM: Plugin = { name: 'janus.plugin.videoroom', isAnswer };

function isAnswer(data: Answer): boolean {
  if (data['error_code'] !== undefined) return true;
  if (['joined', 'attached', 'updated', 'updating'].includes(String(data['videoroom']))) return true;
  if (data['reason'] !== undefined) return false;
  return ['configured', 'started', 'paused', 'switched', 'left', 'leaving', 'unpublished'].some((key) => data[key] === 'ok');
}
