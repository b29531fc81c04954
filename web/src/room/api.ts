// What the video room's messages say, as far as the page reads it.

/** A number, or text on servers that are set up so. */
export type Id = number | string;

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

export type Answer = Record<string, any>;

/** The plugin's codes that the page treats apart. */
export const CODES = { noRoom: 426, noFeed: 428, missing: 429, invalid: 430, full: 432, unauthorized: 433, nothingToOffer: 437 } as const;

/** An error of the plugin's. */
export class Refused extends Error {
  constructor(readonly code: number, text: string) {
    super(text);
  }
}

/** The answer, or its error thrown. */
export function accepted(answer: Answer): Answer {
  if (answer['error_code'] !== undefined) throw new Refused(Number(answer['error_code']), String(answer['error']));
  return answer;
}

/** Why something was refused, in words for the user. */
export function explain(error: unknown): string {
  if (!(error instanceof Refused)) return error instanceof Error ? error.message : String(error);
  switch (error.code) {
    case CODES.noRoom:
      return 'There is no such room. It may have been closed.';
    case CODES.full:
      return 'As many people send here as the room allows. You can watch and read, and send when somebody else stops.';
    case CODES.unauthorized:
      if (/pin/i.test(error.message)) return 'This is not the PIN of the room.';
      if (/secret/i.test(error.message)) return 'This is not the secret of the room.';
      if (/admin/i.test(error.message)) return 'This is not the key that the server asks for.';
      return `You are not allowed to: ${error.message}.`;
    case CODES.missing:
      if (/\bpin\b/i.test(error.message)) return 'This room asks for a PIN.';
      if (/admin_key/i.test(error.message)) return 'This server asks for a key from those who create rooms.';
      if (/secret/i.test(error.message)) return 'This room has a secret; without it nobody can moderate.';
      break;
  }
  return `The server says: ${error.message} (${error.code})`;
}

/** What names a stream of a publisher. */
export function keyOf(feed: Id, mid: string): string {
  return `${feed}/${mid}`;
}
