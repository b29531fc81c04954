// The list of sessions with their handles: a page of it, searched and sorted by the server.
import { make } from '../make';
import { element } from '../page';
import { bitrate, duration, percent } from '../units';
import { placeOf } from './places';
import type { HandleRow, SessionRow } from './wire';

/** How many sessions a page of the list has. */
const PAGE = 20;

/** A share of lost packets that is marked. */
const MUCH = 0.02;

export class Sessions {
  private readonly root = element('sessions');
  private readonly none = element('no-sessions');
  private readonly search = element<HTMLInputElement>('search');
  private readonly sort = element<HTMLSelectElement>('sort');
  private readonly rows = new Map<string, HTMLElement>();
  private offset = 0;

  /** `changed` is called when another page is to be shown. */
  constructor(private readonly changed: () => void) {
    const anew = () => {
      this.offset = 0;
      changed();
    };
    element<HTMLFormElement>('search-form').addEventListener('submit', (event) => {
      event.preventDefault();
      anew();
    });
    this.search.addEventListener('input', anew);
    this.sort.addEventListener('change', anew);
    element('previous').addEventListener('click', () => this.turn(-PAGE));
    element('next').addEventListener('click', () => this.turn(PAGE));
  }

  /** The request. */
  get wanted(): { search?: string; sort: string; offset: number; limit: number } {
    const search = this.search.value.trim();
    return { ...(search && { search }), sort: this.sort.value, offset: this.offset, limit: PAGE };
  }

  /** Shows a page of `total` sessions. */
  show(sessions: SessionRow[], total: number): void {
    const shown = this.wanted;
    const rows = sessions.map((session) => this.row(session));
    rows.forEach((row, index) => {
      if (this.root.children[index] !== row) this.root.insertBefore(row, this.root.children[index] ?? null);
    });
    while (this.root.children.length > rows.length) this.root.lastElementChild?.remove();
    const known = new Set(sessions.map(({ session_id }) => String(session_id)));
    for (const key of this.rows.keys()) if (!known.has(key)) this.rows.delete(key);
    this.none.hidden = rows.length > 0;
    this.none.textContent = shown.search ? 'None of them fits the search.' : 'There are none.';
    element('sessions-count').textContent = shown.search ? `${total} found` : String(total);
    element('pages').hidden = total <= PAGE && shown.offset === 0;
    const last = Math.min(shown.offset + sessions.length, total);
    element('page').textContent = `${sessions.length > 0 ? shown.offset + 1 : 0} to ${last} of ${total}`;
    element<HTMLButtonElement>('previous').disabled = shown.offset === 0;
    element<HTMLButtonElement>('next').disabled = last >= total;
    // The last of them ended.
    if (sessions.length === 0 && shown.offset > 0) this.turn(-PAGE);
  }

  private turn(by: number): void {
    this.offset = Math.max(0, this.offset + by);
    this.changed();
  }

  /** The row of a session: links stay what they were, so that they keep the focus. */
  private row(session: SessionRow): HTMLElement {
    const key = String(session.session_id);
    let row = this.rows.get(key);
    if (!row) {
      row = make('li', { testid: `session-${key}` });
      row.append(make('div', { className: 'about' }), make('ul', { className: 'handles' }));
      this.rows.set(key, row);
    }
    const [about, handles] = row.children as unknown as [HTMLElement, HTMLElement];
    const name = make('strong', { text: key });
    about.replaceChildren(name, ...aboutSession(session).map((text) => make('span', { className: 'soft', text })));
    const links = new Map([...handles.children].map((item) => [(item as HTMLElement).dataset['handle'], item]));
    const items = session.handles.map((handle) => {
      const id = String(handle.handle_id);
      const item = (links.get(id) as HTMLElement | undefined) ?? newHandle(key, id);
      showHandle(item.firstElementChild as HTMLElement, handle, placeOf(key, id));
      return item;
    });
    items.forEach((item, index) => {
      if (handles.children[index] !== item) handles.insertBefore(item, handles.children[index] ?? null);
    });
    while (handles.children.length > items.length) handles.lastElementChild?.remove();
    return row;
  }
}

function aboutSession(session: SessionRow): string[] {
  const silent = session.idle >= 1 ? `, silent for ${duration(session.idle)}` : '';
  return [
    [short(session.transport), session.address].filter(Boolean).join(' from '),
    `for ${duration(session.age)}${silent}`,
    ...(session.handles.length === 0 ? ['no handle'] : []),
  ];
}

function newHandle(session: string, handle: string): HTMLElement {
  const item = make('li');
  item.dataset['handle'] = handle;
  const link = make('a', { testid: `handle-${handle}` });
  link.href = `connection.html?${new URLSearchParams({ session, handle })}`;
  link.append(make('span', { className: 'what' }), make('span', { className: 'rates' }));
  item.append(link);
  return item;
}

function showHandle(link: HTMLElement, handle: HandleRow, place: string): void {
  const [what, rates] = link.children as unknown as [HTMLElement, HTMLElement];
  what.textContent = [short(handle.plugin), place, handle.opaque_id, handle.connection].filter(Boolean).join(' · ');
  const { bitrate_in: comes, bitrate_out: goes, loss_in: lostIn, loss_out: lostOut } = handle;
  const parts: HTMLElement[] = [];
  if (comes !== undefined) parts.push(make('span', { text: `in ${bitrate(comes)}` }));
  if (goes !== undefined) parts.push(make('span', { text: `out ${bitrate(goes)}` }));
  const losses: [string, number | undefined][] = [['in', lostIn], ['out', lostOut]];
  for (const [way, lost] of losses) {
    if (lost) parts.push(make('span', { className: lost >= MUCH ? 'bad' : '', text: `${percent(lost)} lost ${way}` }));
  }
  rates.replaceChildren(...parts);
}

/** A package's name without what all of its kind begin with. */
export function short(name: string): string {
  return name.replace(/^janus\.(plugin|transport|eventhandler)\./, '');
}
