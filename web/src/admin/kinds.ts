// The kinds of events, and what one event says in short.
import type { Json } from './api';
import type { ServerEvent } from './wire';

/** Kinds by their numbers, with their labels in lists of kinds. */
export const KINDS: [number: number, label: string, name: string][] = [
  [1, 'sessions', 'Sessions'],
  [2, 'handles', 'Handles'],
  [8, 'jsep', 'Descriptions'],
  [16, 'webrtc', 'WebRTC'],
  [32, 'media', 'Media'],
  [64, 'plugins', 'Plugins'],
  [128, 'transports', 'Transports'],
  [4, 'external', 'External'],
  [256, 'core', 'Server'],
];

export function kindName(type: number): string {
  return KINDS.find(([number]) => number === type)?.[2] ?? `Kind ${type}`;
}

/** The package of the plugin that an event is about, where it says so. */
export function pluginOf({ event }: ServerEvent): string | undefined {
  const plugin = (event as Json | null)?.['plugin'];
  return typeof plugin === 'string' ? plugin : undefined;
}

/** Summarizes an event by the plain values of its body. */
export function inShort(event: ServerEvent): string {
  const words: string[] = [];
  collect(event.event, words);
  const text = words.join(' ');
  return text.length > LONG ? `${text.slice(0, LONG)}…` : text;
}

const LONG = 120;

/** Names of members that say nothing by themselves. */
const BARE = ['name', 'event', 'plugin', 'transport', 'data'];

function collect(value: unknown, words: string[], name = ''): void {
  if (words.join(' ').length > LONG) return;
  if (Array.isArray(value)) return void words.push(`${name} ×${value.length}`.trim());
  if (value && typeof value === 'object') {
    for (const [key, one] of Object.entries(value)) collect(one, words, key);
    return;
  }
  const text = String(value).replace(/\s+/g, ' ');
  words.push(BARE.includes(name) || !name ? text : `${name} ${text}`);
}
