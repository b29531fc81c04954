// The common part of pages with rooms: a session with the server, the lobby, joining a room and leaving it.
import { Refused, type Answer, type Id } from './answer';
import { copyLink } from './link';
import { Lobby, type ListedRoom } from './lobby';
import { listeners, type Standing } from './listening';
import { clearNotice, element, idle, notice, pageOptions, serverAway, status } from './page';
import { remember, remembered } from './memory';
import { comeBack } from './return';
import { everySeen, SECOND } from './seen';
import { connect, type Session } from './session';

/** How often it is asked who else gets what is said in the room, which events do not tell. */
const LOOK = 5 * SECOND;

/** The plugin's codes of what the pages treat alike. */
export interface RoomCodes {
  missing: number;
  /** A wrong type. */
  invalid: number;
  unauthorized: number;
}

/** The entries of the lobby. */
export interface Entrant {
  room: Id;
  name: string;
  pin: string;
  /** That of a room that was made here. */
  secret: string;
}

/** The page's own part. */
export interface RoomPageParts<Listed extends ListedRoom> {
  /** The page's file, for links to rooms. */
  file: string;
  codes: RoomCodes;
  /** A handle to ask for rooms with. */
  attach(session: Session): Promise<{ ask(body: Record<string, unknown>): Promise<Answer> }>;
  /** The description of a room in the list, beside its participants. */
  about(room: Listed): string;
  /** Members of `create` beside the common ones. */
  creation(): Record<string, unknown>;
  /** Joins a room. */
  enter(session: Session, entrant: Entrant): Promise<void>;
  /** The user is in the room, which is shown. */
  entered(description: string): void;
  /** Who else gets what is said in the room, at first as the list tells of it, and then as it changes. */
  stands?(standing: Standing): void;
  /** Leaves the room. */
  leave(): Promise<void>;
  /** Ends everything here; the server knows already, or is away. */
  close(): void;
  /** The server has forgotten the user, who is to come back to the room: ends what was with the server. Without it, `close` does. */
  suspend?(): void;
  /** The lobby is shown. */
  away(): void;
  /** Why something was refused, in words for the user. */
  explain(error: unknown): string;
  /** Helps with an error of joining in a way of the page's own; whether it has done all that there is to do. */
  help?(error: unknown): boolean;
}

export class RoomPage<Listed extends ListedRoom> {
  private readonly query = new URLSearchParams(window.location.search);
  private readonly options = pageOptions();
  private readonly lobby: Lobby<Listed>;
  private session: Session | null = null;
  /** The room that the user is in. */
  private inside: Entrant | null = null;
  private asking: { ask(body: Record<string, unknown>): Promise<Answer> } | null = null;

  constructor(private readonly parts: RoomPageParts<Listed>) {
    this.lobby = new Lobby<Listed>({
      ask: (body) => this.ask(body),
      join: () => void this.join(),
      failed: (error) => this.failed(error),
      back: clearNotice,
      about: (room) => [parts.about(room), ...listeners(room).map(({ short }) => short)].filter(Boolean).join(' · '),
      creation: parts.creation,
      invalid: parts.codes.invalid,
    });
    element('leave').addEventListener('click', () => void this.leave());
    element('copy-link').addEventListener('click', () => void copyLink(parts.file, 'room', this.query.get('room') ?? ''));
    this.lobby.fill(this.query.get('room') ?? '', this.options.name || remembered('name'));
    element('pin-field').hidden = !this.query.has('pin');
    element<HTMLInputElement>('pin').value = this.query.get('pin') ?? '';
    this.showLobby();
    // A link or a page around this one leads into a room at once.
    everySeen(LOOK, () => () => void this.look());
    void this.lobby.ready.then(() => {
      const { query, lobby } = this;
      if (query.get('join') === '1' && query.has('room') && lobby.name) return this.join();
      return this.missing();
    });
  }

  /** Joins the room that is entered in the lobby. */
  async join(): Promise<void> {
    const button = element<HTMLButtonElement>('join');
    button.disabled = true;
    clearNotice();
    status('Joining…');
    const { lobby, parts, query } = this;
    try {
      const room = await lobby.roomId();
      if (!this.session) return;
      const entrant = { room, name: lobby.name, pin: lobby.enteredPin, secret: lobby.secret };
      await parts.enter(this.session, entrant);
      this.inside = entrant;
      remember('name', lobby.name);
      lobby.hide();
      element('meeting').hidden = false;
      query.set('room', String(room));
      query.delete('pin');
      history.replaceState(null, '', `?${query}`);
      status(`In the room as ${lobby.name}.`);
      parts.entered(lobby.describe(room));
      parts.stands?.(lobby.listedRoom(room) ?? {});
      void this.look();
    } catch (error) {
      this.showLobby();
      idle('Not in a room.');
      if (parts.help?.(error)) return;
      this.failed(error);
      const { missing, unauthorized } = parts.codes;
      if (error instanceof Refused && (error.code === missing || error.code === unauthorized)) lobby.askPin();
    } finally {
      button.disabled = false;
    }
  }

  /** Says at once that a link leads to a room that is not there. */
  private async missing(): Promise<void> {
    if (!this.query.has('room') || this.inside) return;
    const answer = await this.lobby.roomId().then((room) => this.ask({ request: 'exists', room })).catch(() => null);
    if (answer?.['exists'] !== false || this.inside) return;
    notice('warning', `There is no room ${this.query.get('room')}. It may have been closed.`, [
      { label: 'Make a room', id: 'make-room', run: () => { clearNotice(); this.lobby.offerNew(); } },
    ]);
  }

  /** The user is out of the room without having asked for it. */
  left(why: string): void {
    this.showLobby();
    notice('info', why);
  }

  private async ask(body: Record<string, unknown>): Promise<Answer> {
    this.session ??= await connect(this.options.transport, (reason) => this.lostServer(reason));
    this.asking ??= await this.parts.attach(this.session);
    return this.asking.ask(body);
  }

  private async look(): Promise<void> {
    const { inside, parts } = this;
    if (!inside || !parts.stands || !this.session) return;
    // The list would not have private rooms.
    const told = await this.ask({ request: 'listparticipants', room: inside.room }).catch(() => null);
    if (told && this.inside === inside) parts.stands(told as Standing);
  }

  private failed(error: unknown): void {
    notice('error', this.session ? this.parts.explain(error) : serverAway(error));
  }

  private async leave(): Promise<void> {
    const left = this.parts.leave();
    clearNotice();
    this.showLobby();
    // It is left on this side, whatever the server answers.
    await left.catch(() => {});
  }

  private showLobby(): void {
    this.inside = null;
    this.parts.away();
    element('meeting').hidden = true;
    element('link').hidden = true;
    this.lobby.show();
    idle('Choose a room.');
  }

  private lostServer(reason: string): void {
    this.session = null;
    this.asking = null;
    const { inside, parts } = this;
    if (inside) {
      (parts.suspend ?? parts.close).call(parts);
      return void this.comeBack(inside);
    }
    parts.close();
    this.showLobby();
    notice('error', serverAway(reason));
  }

  /** Joins the same room again, once there is a server. */
  private async comeBack(entrant: Entrant): Promise<void> {
    status('Reconnecting…');
    const isWanted = (): boolean => this.inside === entrant;
    const failure = await comeBack({
      isWanted,
      // It is another server by now, or its rooms are others.
      isHopeless: (error) => error instanceof Refused,
      attempt: async () => {
        this.session = await connect(this.options.transport, (why) => this.lostServer(why));
        await this.parts.enter(this.session, entrant);
        // The user has left meanwhile.
        if (!isWanted()) return void (await this.parts.leave().catch(() => {}));
        clearNotice();
        status(`In the room as ${entrant.name}.`);
      },
    });
    if (failure === undefined || !isWanted()) return;
    this.parts.close();
    this.showLobby();
    notice('error', this.session ? this.parts.explain(failure) : serverAway(failure), [{ label: 'Try again', id: 'again', run: () => void this.join() }]);
  }
}
