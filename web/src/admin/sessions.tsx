// The list of sessions with their handles: a page of it, searched and sorted by the server.
import { render } from 'preact';
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
    render(<>{sessions.map((session) => <SessionItem key={session.session_id} session={session} />)}</>, this.root);
    this.none.hidden = sessions.length > 0;
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
}

function SessionItem({ session }: { session: SessionRow }) {
  const id = String(session.session_id);
  return (
    <li data-testid={`session-${id}`}>
      <div class="about">
        <strong>{titleOf(session)}</strong>
        <span class="soft">session {id}</span>
        {aboutSession(session).map((text) => <span class="soft">{text}</span>)}
      </div>
      <ul class="handles">
        {session.handles.map((handle) => <HandleItem key={handle.handle_id} session={id} handle={handle} />)}
      </ul>
    </li>
  );
}

/** What a session is for: where somebody is, or else what it uses. */
function titleOf({ session_id, handles }: SessionRow): string {
  const places = handles.map(({ handle_id }) => placeOf(session_id, handle_id)).filter(Boolean);
  const plugins = [...new Set(handles.map(({ plugin }) => short(plugin)))].join(', ');
  return places.sort((a, b) => b.length - a.length)[0] ?? (plugins || 'Nothing so far');
}

function HandleItem({ session, handle }: { session: string; handle: HandleRow }) {
  const id = String(handle.handle_id);
  const { bitrate_in: comes, bitrate_out: goes } = handle;
  const losses = [['in', handle.loss_in], ['out', handle.loss_out]] as const;
  return (
    <li>
      <a data-testid={`handle-${id}`} href={`connection.html?${new URLSearchParams({ session, handle: id })}`}>
        <span class="what">{[short(handle.plugin), placeOf(session, id), handle.opaque_id, handle.connection].filter(Boolean).join(' · ')}</span>
        <span class="rates">
          {comes !== undefined && <span>in {bitrate(comes)}</span>}
          {goes !== undefined && <span>out {bitrate(goes)}</span>}
          {losses.map(([way, lost]) => lost ? <span class={lost >= MUCH ? 'bad' : ''}>{percent(lost)} lost {way}</span> : null)}
        </span>
      </a>
    </li>
  );
}

function aboutSession(session: SessionRow): string[] {
  const silent = session.idle >= 1 ? `, silent for ${duration(session.idle)}` : '';
  return [
    [short(session.transport), session.address].filter(Boolean).join(' from '),
    `for ${duration(session.age)}${silent}`,
    ...(session.handles.length === 0 ? ['no handle'] : []),
  ];
}

/** A package's name without what all of its kind begin with. */
export function short(name: string): string {
  return name.replace(/^janus\.(plugin|transport|eventhandler)\./, '');
}
