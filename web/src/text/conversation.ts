// The conversation of the room: each line with its time, sender and recipients.
import { make } from '../make';
import { element } from '../page';
import type { TextEvent } from './api';

/** Lines that are kept. */
const LIMIT = 500;

/** Pixels from the end within which new lines are followed. */
const NEAR = 40;

export class Conversation {
  private readonly log = element('log');
  /** What is shown, to know it again. */
  private readonly shown = new Set<string>();

  /** A message, as everybody gets it, the author too. */
  said(event: TextEvent, own: boolean): void {
    const line = make('p', { className: own ? 'own' : 'others', testid: 'line' });
    const name = make('strong', { text: event.display || event.from || '' });
    const whisper = event.whisper ? [make('em', { className: 'soft', text: own ? ' to yourself' : ' whispers' })] : [];
    line.append(...time(event.date), name, ...whisper, make('span', { className: 'said', text: event.text ?? '', testid: 'said' }));
    this.shown.add(identity(event));
    this.add(line);
  }

  /** Whether a message is shown already. */
  has(event: TextEvent): boolean {
    return this.shown.has(identity(event));
  }

  /** A whisper of one's own, which only those get who are named. */
  whispered(to: string, text: string): void {
    const line = make('p', { className: 'own', testid: 'line' });
    line.append(...time(), make('strong', { text: 'You' }), make('em', { className: 'soft', text: ` to ${to}` }), make('span', { className: 'said', text, testid: 'said' }));
    this.add(line);
  }

  announced(event: TextEvent): void {
    const line = make('p', { className: 'announcement', testid: 'announcement' });
    line.append(...time(event.date), make('strong', { text: 'Announcement' }), make('span', { className: 'said', text: event.text ?? '', testid: 'said' }));
    this.add(line);
  }

  /** Something that nobody said. */
  remark(text: string): void {
    const line = make('p', { className: 'soft', testid: 'remark' });
    line.append(...time(), make('span', { text }));
    this.add(line);
  }

  clear(): void {
    this.shown.clear();
    this.log.replaceChildren();
  }

  /** Keeps the position of a reader who has scrolled back. */
  private add(line: HTMLElement): void {
    const { scrollHeight, scrollTop, clientHeight } = this.log;
    const follows = scrollHeight - scrollTop - clientHeight < NEAR;
    this.log.append(line);
    while (this.log.childElementCount > LIMIT) this.log.firstElementChild?.remove();
    if (follows) this.log.scrollTop = this.log.scrollHeight;
  }
}

function identity({ from, date, text }: TextEvent): string {
  return JSON.stringify([from, date, text]);
}

/** The time of the server's date, or of now, as people here write it; the day too, if it is another. */
function time(date?: string): HTMLElement[] {
  // ISO 8601 wants a colon in the zone.
  const when = date ? new Date(date.replace(/([+-]\d\d)(\d\d)$/, '$1:$2')) : new Date();
  if (Number.isNaN(when.getTime())) return [];
  const today = when.toDateString() === new Date().toDateString();
  const text = when.toLocaleString(undefined, { hour: '2-digit', minute: '2-digit', ...(!today && { day: 'numeric', month: 'short' }) });
  const made = make('time', { className: 'soft', text, testid: 'time' });
  made.dateTime = when.toISOString();
  made.title = when.toLocaleString();
  return [made];
}
