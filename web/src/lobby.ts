// Before the room: which ones there are, joining one, making one.
import { Refused, type Answer, type Id } from './answer';
import type { Standing } from './listening';
import { make, makeButton } from './make';
import { element } from './page';

/** How often the list is read again, in milliseconds. */
const REFRESH = 5000;

/** A room, as far as all plugins list it alike. */
export interface ListedRoom extends Standing {
  room: Id;
  description: string;
  pin_required: boolean;
  num_participants: number;
}

export interface LobbyActions<Listed extends ListedRoom> {
  ask(body: Record<string, unknown>): Promise<Answer>;
  join(): void;
  failed(error: unknown): void;
  /** The list can be read again. */
  back(): void;
  /** The description of a room in the list, beside its participants. */
  about(room: Listed): string;
  /** Members of `create` beside the common ones. */
  creation(): Record<string, unknown>;
  /** The plugin's code for a wrong type. */
  invalid: number;
}

export class Lobby<Listed extends ListedRoom> {
  private readonly root = element('lobby');
  private readonly room = element<HTMLInputElement>('room');
  private readonly pin = element<HTMLInputElement>('pin');
  private timer?: ReturnType<typeof setTimeout>;
  /** Resolves when the list was read for the first time. */
  readonly ready: Promise<void>;
  private read = () => {};
  private listed: Listed[] = [];
  private shown = '';
  private made = { room: '', secret: '' };
  private away = false;

  constructor(private readonly actions: LobbyActions<Listed>) {
    this.ready = new Promise((done) => (this.read = done));
    element<HTMLFormElement>('join-form').addEventListener('submit', (event) => {
      event.preventDefault();
      if (this.isFirst) void this.create();
      else actions.join();
    });
    this.room.addEventListener('input', () => this.mark());
    element<HTMLFormElement>('create-form').addEventListener('submit', (event) => {
      event.preventDefault();
      void this.create();
    });
    document.addEventListener('visibilitychange', () => {
      if (!document.hidden) void this.refresh();
    });
  }

  get name(): string {
    return element<HTMLInputElement>('name').value.trim();
  }

  /** The secret of a room that was made here, or that was entered for it. */
  get secret(): string {
    const field = document.querySelector<HTMLInputElement>('input#secret');
    return field?.value || (this.made.room === this.room.value.trim() ? this.made.secret : '');
  }

  set secret(secret: string) {
    this.made = { room: this.room.value.trim(), secret };
    const field = document.querySelector<HTMLInputElement>('input#secret');
    if (field) field.value = secret;
  }

  get enteredPin(): string {
    return this.pin.value;
  }

  fill(room: string, name: string): void {
    this.room.value = room;
    element<HTMLInputElement>('name').value = name;
  }

  show(): void {
    this.root.hidden = false;
    void this.refresh();
  }

  hide(): void {
    this.root.hidden = true;
    clearTimeout(this.timer);
  }

  /** Opens the form for a new room. */
  offerNew(): void {
    element<HTMLDetailsElement>('create').open = true;
    element('new-description').focus();
  }

  askPin(): void {
    element('pin-field').hidden = false;
    this.pin.focus();
    this.pin.select();
  }

  /** The room that was entered, as the server writes its ids. */
  async roomId(): Promise<Id> {
    const text = this.room.value.trim();
    const known = this.listed.find(({ room }) => String(room) === text);
    if (known) return known.room;
    if (!/^\d{1,16}$/.test(text)) return text;
    try {
      await this.actions.ask({ request: 'exists', room: Number(text) });
      return Number(text);
    } catch (error) {
      // Ids are texts on servers that are set up so.
      if (error instanceof Refused && error.code === this.actions.invalid) return text;
      throw error;
    }
  }

  /** Returns what the list told of a room last. */
  listedRoom(id: Id): Listed | undefined {
    return this.listed.find(({ room }) => room === id);
  }

  /** The name of a room. */
  describe(id: Id): string {
    return this.listedRoom(id)?.description ?? `Room ${id}`;
  }

  private async refresh(): Promise<void> {
    clearTimeout(this.timer);
    if (this.root.hidden) return;
    try {
      const { list } = await this.actions.ask({ request: 'list' });
      this.showList(list as Listed[]);
      this.read();
      if (this.away) this.actions.back();
      this.away = false;
    } catch (error) {
      this.away = true;
      this.actions.failed(error);
    }
    if (!document.hidden) this.timer = setTimeout(() => void this.refresh(), REFRESH);
  }

  private showList(list: Listed[]): void {
    this.listed = [...list].sort((a, b) => String(a.room).localeCompare(String(b.room), undefined, { numeric: true }));
    element('no-rooms').hidden = list.length > 0;
    // Whoever finds no room needs one.
    if (list.length === 0 && this.shown === '') element<HTMLDetailsElement>('create').open = true;
    // Building the list anew would take the focus from its buttons.
    const text = JSON.stringify(this.listed);
    if (text === this.shown) return this.mark();
    this.shown = text;
    element('rooms').replaceChildren(...this.listed.map((one) => this.row(one)));
    const [only] = this.listed;
    if (only && this.listed.length === 1 && !this.room.value) this.enter(only);
    this.mark();
  }

  private row(listed: Listed): HTMLElement {
    const root = make('li', { testid: `room-${listed.room}` });
    const words = make('div', { className: 'grow' });
    const people = listed.num_participants === 1 ? '1 person' : `${listed.num_participants} people`;
    const state = [people, this.actions.about(listed), listed.pin_required && 'with a PIN'].filter(Boolean).join(' · ');
    words.append(make('strong', { text: `${listed.description} (${listed.room})` }), make('br'), make('span', { className: 'soft', text: state, testid: 'state' }));
    const pick = makeButton('Join', 'join-room', () => this.choose(listed));
    pick.setAttribute('aria-label', `Join ${listed.description}`);
    root.append(words, pick);
    return root;
  }

  /** Joins a room of the list, as soon as what it takes is entered. */
  private choose(listed: Listed): void {
    this.enter(listed);
    element<HTMLFormElement>('join-form').requestSubmit();
  }

  private enter({ room }: Listed): void {
    this.room.value = String(room);
    this.mark();
  }

  /** There is no room to choose, and none is entered: joining makes the first one. */
  private get isFirst(): boolean {
    return this.listed.length === 0 && !this.room.value.trim();
  }

  /** Marks the room that is entered, and asks for its PIN if it is known to have one. */
  private mark(): void {
    this.room.required = !this.isFirst;
    this.room.placeholder = this.isFirst ? 'of a private room, if you have one' : 'or choose one of the list';
    element('join').textContent = this.isFirst ? 'Make a room and join' : 'Join';
    const text = this.room.value.trim();
    const listed = this.listed.find(({ room }) => String(room) === text);
    this.pin.required = listed?.pin_required === true;
    if (listed) element('pin-field').hidden = !listed.pin_required && !this.pin.value;
    for (const row of element('rooms').children) row.classList.toggle('chosen', (row as HTMLElement).dataset['testid'] === `room-${this.room.value.trim()}`);
  }

  private async create(): Promise<void> {
    const text = (key: string, id: string) => (value(id) ? { [key]: value(id) } : {});
    // It is joined at once, which takes a name.
    if (!element<HTMLInputElement>('name').reportValidity()) return;
    try {
      const { room } = await this.actions.ask({
        request: 'create',
        ...this.actions.creation(),
        is_private: element<HTMLInputElement>('new-private').checked,
        ...text('description', 'new-description'),
        ...text('pin', 'new-pin'),
        ...text('secret', 'new-secret'),
        ...text('admin_key', 'new-admin-key'),
      });
      this.room.value = String(room);
      this.pin.value = value('new-pin');
      this.secret = value('new-secret');
      element('pin-field').hidden = !this.pin.value;
      element<HTMLDetailsElement>('create').open = false;
      await this.refresh();
      this.actions.join();
    } catch (error) {
      if (error instanceof Refused && /admin_key/.test(error.message)) element('new-admin-key-field').hidden = false;
      this.actions.failed(error);
    }
  }
}

/** The value of a field. */
export function value(id: string): string {
  return element<HTMLInputElement>(id).value.trim();
}
