// The common part of the answers of all plugins with rooms.

/** A number, or text on servers that are set up so. */
export type Id = number | string;

export type Answer = Record<string, any>;

/** An error of a plugin's. */
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

/** Why somebody is not let in who has shown something wrong, in words for the user. */
export function explainWrong(text: string): string {
  if (/pin/i.test(text)) return 'This is not the PIN of the room.';
  if (/secret/i.test(text)) return 'This is not the secret of the room.';
  if (/admin/i.test(text)) return 'This is not the key that the server asks for.';
  return `You are not allowed to: ${text}.`;
}

/** The same of somebody who has not shown something; none if it is about something else. */
export function explainMissing(text: string): string | null {
  if (/\bpin\b/i.test(text)) return 'This room asks for a PIN.';
  if (/admin_key/i.test(text)) return 'This server asks for a key from those who create rooms.';
  if (/secret/i.test(text)) return 'This room has a secret; without it nobody can moderate.';
  return null;
}
