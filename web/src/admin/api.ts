// Requests of the Admin API, over HTTP.
import { askSecret, keepSecret, secret } from './secret';

export type Json = Record<string, unknown>;
/** Of a session or handle; texts where the server is set up so. */
export type Id = number | string;

/** An error of the API. */
export class Refused extends Error {
  constructor(readonly code: number, reason: string) {
    super(reason);
  }
}

/** Codes of errors that pages tell apart. */
export const CODES = { unauthorized: 403, noSession: 458, noHandle: 459, noPlugin: 460 } as const;

/** The path of the Admin API, which the server writes into its pages. */
export function adminPath(): string {
  const path = document.querySelector<HTMLMetaElement>('meta[name="portunus-admin"]')?.content ?? '/admin';
  // A proxy may have put the pages into a folder.
  return new URL(path.replace(/^\//, ''), new URL('.', location.href)).pathname;
}

/** Sends a request to the server, a session or a handle of it; asks the user for the secret where the server wants one. */
export async function ask<T = Json>(verb: string, members: Json = {}, ...ids: Id[]): Promise<T> {
  const path = [adminPath(), ...ids.map((id) => encodeURIComponent(id))].join('/');
  let shown = secret();
  for (let asked = false; ; asked = true) {
    const answer = await send(path, { ...members, janus: verb, transaction: transaction(), ...(shown && { admin_secret: shown }) });
    const error = answer['error'] as { code: number; reason: string } | undefined;
    if (!error) {
      if (asked) keepSecret(shown);
      return answer as T;
    }
    if (!asksForSecret(error)) throw new Refused(error.code, error.reason);
    // Another request may have been given it meanwhile.
    if (shown !== secret()) shown = secret();
    else {
      if (shown) keepSecret('');
      shown = await askSecret(asked);
    }
  }
}

/** Whether a secret would open what was refused: a server without one lets in programs on its own machine and nobody else. */
export function asksForSecret({ code, reason }: { code: number; reason: string }): boolean {
  return code === CODES.unauthorized && !reason.includes('without admin.secret');
}

async function send(path: string, message: Json): Promise<Json> {
  const response = await fetch(path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(message),
    cache: 'no-store',
  });
  if (!response.ok) throw new Error(`it answered with status ${response.status}`);
  return (await response.json()) as Json;
}

export function transaction(): string {
  return Math.random().toString(36).slice(2);
}

/** Why something did not work, for the user. */
export function explain(error: unknown): string {
  if (error instanceof Refused) return `The server refused that: ${error.message} (${error.code}).`;
  const detail = error instanceof Error ? error.message : String(error);
  return `The server cannot be reached. Is it running? (${detail})`;
}
