// Where the handles of sessions are: the room or mountpoint of each, and the name of whoever is there.
import { ask, Refused, type Id, type Json } from './api';
import type { SessionRow } from './wire';

/** For how long an answer holds, in milliseconds. */
const HOLDS = 10_000;

const known = new Map<string, { at: number; text: string }>();

/** Returns what is known of a handle, as in `room 1234 · Ann`. */
export function placeOf(session: Id, handle: Id): string {
  return known.get(`${session}/${handle}`)?.text ?? '';
}

/** Asks for the handles of these sessions that are not known well enough. */
export async function findPlaces(sessions: SessionRow[]): Promise<void> {
  const now = performance.now();
  const handles = sessions.flatMap(({ session_id, handles }) => handles.map(({ handle_id }) => [session_id, handle_id] as const));
  const asked = handles.filter(([session, handle]) => now - (known.get(`${session}/${handle}`)?.at ?? -HOLDS) >= HOLDS);
  await Promise.all(
    asked.map(async ([session, handle]) => {
      const key = `${session}/${handle}`;
      known.set(key, { at: now, text: placeOf(session, handle) });
      try {
        const { info } = await ask<{ info: { plugin_specific?: Json } }>('handle_info', { plugin_only: true }, session, handle);
        known.set(key, { at: now, text: words(info.plugin_specific ?? {}) });
      } catch (error) {
        // It has ended meanwhile.
        if (!(error instanceof Refused)) throw error;
      }
    }),
  );
  const seen = new Set(handles.map(([session, handle]) => `${session}/${handle}`));
  for (const key of known.keys()) if (!seen.has(key)) known.delete(key);
}

function words(of: Json): string {
  // A video room's handle that has not joined yet is of the type `none`.
  const text = (value: unknown): string => ((typeof value === 'string' && value !== 'none') || typeof value === 'number' ? String(value) : '');
  const room = text(of['room'] ?? (of['room'] as Json | undefined)?.['room']);
  const mountpoint = text(of['mountpoint'] ?? of['mountpoint_id'] ?? of['id_mountpoint']);
  const name = text(of['display'] ?? of['username'] ?? of['user'] ?? of['identity']);
  return [text(of['type']), room && `room ${room}`, mountpoint && `mountpoint ${mountpoint}`, name].filter(Boolean).join(' · ');
}
