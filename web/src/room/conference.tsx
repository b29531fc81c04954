// A room while one is in it: who is there, what they send, what is said.
import { render } from 'preact';
import { Refused } from '../answer';
import type { Ending } from '../ending';
import { clearNotice, element, endNotice, notice } from '../page';
import { ReceivedLayers } from '../controls';
import { FiguresPanel } from '../figures';
import { remember, remembered } from '../memory';
import { everySeen, SECOND } from '../seen';
import type { Session } from '../session';
import type { Setup } from '../setup';
import type { Standing } from '../listening';
import { CODES, explain, keyOf, type Doing, type Feed, type FeedStream, type Id } from './api';
import type { Line } from './chat';
import { Meeting, type MeetingActions, type MeetingState, type Panels } from './meeting';
import { Participant, type JoinOptions, type RoomEvents } from './participant';
import { isMuted, type Person } from './people';
import { Rates, type StreamFigures } from './rates';
import { Sending, type Slot } from './sending';
import { Sounds } from '../sounds';
import { live, Subscription } from './subscription';
import type { TileProps } from './tile';
import { Wishes, type Chosen, type Layering } from './wishes';

/** How loud somebody has to be to be shown as speaking; 1 is the loudest. */
const SPEAKING = 0.01;
/** A picture of which nothing came for this many readings, one a second, is not shown any more. */
const STALLED = 3;
/** From this many pictures on the speaker is large, unless the user wants it otherwise. */
const MANY = 7;
/** How many lines of the chat are kept. */
const LINES = 200;
/** After how long a page in the back asks for less, in ms. */
const HIDDEN = 10_000;
/** How often a lost connection is made anew without asking, and after how long, in ms. */
const ATTEMPTS = 5;
const AGAIN = 1_000;

/** Where panels have room beside each other. */
const TALL = window.matchMedia('(min-width: 60rem) and (min-height: 56rem)');

const OWN_CAMERA = 'own/camera';
const OWN_SCREEN = 'own/screen';

/** What is known of a stream besides what the room says. */
interface Seen {
  track: MediaStreamTrack | null;
  figures?: StreamFigures;
  layers: ReceivedLayers;
  layer: string;
  chosen: Chosen;
  /** Readings since the last one with something in it. */
  silent: number;
}

export class Conference {
  private participant: Participant | null = null;
  private subscription: Subscription | null = null;
  private session: Session | null = null;
  private entry: JoinOptions = { room: 0, display: '' };
  private readonly others = new Map<string, Person>();
  private readonly seen = new Map<string, Seen>();
  private lines: Line[] = [];
  private moderationSecret: string | null = null;
  private asksSecret = false;
  /** Who has the floor, in rooms that tell; else who is the loudest. */
  private dominant: Id | null = null;
  private speaker: Id | null = null;
  /** The view that the user has chosen. */
  private view: 'auto' | 'grid' | 'speaker' = 'auto';
  private pinned: string | null = null;
  private panels: Panels;
  private details = new URLSearchParams(window.location.search).get('details') === '1';
  private hand = false;
  private keys = remembered('keys') !== 'off';
  private gone = '';
  private unread = 0;
  private standing: Standing = {};
  private tick = 0;
  private limit = '0';
  private follow = new URLSearchParams(window.location.search).get('last') ?? '0';
  /** Nobody has looked at the page for some time. */
  private hidden = false;
  private attempts = 0;
  private told = '';
  private endFigures?: () => void;
  private readonly title = document.title;

  private readonly sending: Sending;
  private readonly figures: FiguresPanel;
  private readonly wishes = new Wishes((key, settings) => {
    const of = this.streams().find((one) => one.key === key);
    if (of) this.subscription?.configure(of.feed, of.stream.mid, settings);
  });
  private readonly sounds = new Sounds(element('sounds'), () => {
    notice('info', 'The browser waits for you before it plays sound.', [{ label: 'Play sound', id: 'play-sound', run: () => { clearNotice(); this.sounds.resume(); } }]);
  });
  private readonly actions: MeetingActions = {
    publish: () => void this.sending.start(),
    toggleMute: (medium) => this.sending.toggle(medium),
    toggleScreen: () => this.sending.toggleScreen(),
    toggleHand: () => this.change(() => (this.hand = !this.hand)),
    toggleView: () =>
      this.change(() => {
        this.view = this.state().large < 0 ? 'speaker' : 'grid';
        if (this.view === 'grid') this.pinned = null;
      }),
    toggleDetails: () => this.change(() => (this.details = !this.details)),
    toggle: (panel) =>
      this.change(() => {
        // The one that is opened is in sight: beside the long one of settings, and where there is room for one only, it takes the place.
        const alone = panel === 'settings' || !TALL.matches;
        const others = alone ? { people: false, chat: false, settings: false } : { ...this.panels, settings: false };
        this.panels = { ...others, [panel]: !this.panels[panel] };
        if (this.panels.chat) this.unread = 0;
      }),
    enlarge: (key) => this.change(() => (this.pinned = this.pinned === key ? null : key)),
    choose: (key, chosen) => this.change(() => (this.of(key).chosen = chosen)),
    mute: (id, stream, mute) => this.run(this.participant?.ask({ request: 'moderate', id, mid: stream.mid, mute, ...this.secret() })),
    kick: (id) => this.run(this.participant?.ask({ request: 'kick', id, ...this.secret() })),
    moderate: (secret) => this.run(this.moderate(secret)),
    toggleKeys: () =>
      this.change(() => {
        this.keys = !this.keys;
        remember('keys', this.keys ? '' : 'off');
      }),
    record: (on) => {
      if (!on) return this.run(this.record(false));
      const text = 'Record the room? Everybody is told. What each of you sends becomes a file on the server, where whoever runs it finds it.';
      notice('warning', text, [
        { label: 'Record', id: 'record-now', run: () => { clearNotice(); this.run(this.record(true)); } },
        { label: 'Do not record', id: 'record-not', run: clearNotice },
      ]);
    },
    prepareToSay: () => void this.participant?.prepareToSay().catch((error: unknown) => notice('warning', explain(error))),
    say: (text) => this.say(text),
    follow: (last) => this.change(() => { this.follow = last; this.receive(); }),
    limit: (kbit) => this.change(() => { this.limit = kbit; this.sending.cap(Number(kbit)); }),
  };

  /** `ended` is called when the room is over without having been left; its text says why. */
  constructor(setup: Setup, private readonly ended: (why: string) => void) {
    const wanted = (new URLSearchParams(window.location.search).get('panels') ?? '').split(',');
    const open = TALL.matches ? wanted : wanted.slice(0, 1);
    this.panels = { people: open.includes('people'), chat: open.includes('chat'), settings: false };
    this.sending = new Sending(setup, () => this.participant, () => this.draw());
    this.draw();
    this.figures = new FiguresPanel(element('figures'), { receiveOnly: true, manyStreams: true });
    let timer: ReturnType<typeof setTimeout> | undefined;
    document.addEventListener('visibilitychange', () => {
      clearTimeout(timer);
      if (document.hidden) timer = setTimeout(() => this.change(() => (this.hidden = true)), HIDDEN);
      else this.change(() => (this.hidden = false));
    });
  }

  /** Joins, shows the room, and sends what the form says, of which some is muted. */
  async enter(session: Session, options: JoinOptions, secret: string, muted: Slot[] = []): Promise<void> {
    this.entry = { ...options, metadata: this.doing() };
    this.told = JSON.stringify(this.entry.metadata);
    this.participant = await Participant.join(session, this.entry, this.events);
    this.session = session;
    this.receive();
    this.figures.start(() => this.subscription?.peerConnection ?? null);
    this.readFigures();
    if (secret) this.run(this.moderate(secret));
    this.sending.startMuted(muted);
    void this.sending.start();
  }

  /** Shows who else gets what is said. */
  stands(standing: Standing): void {
    const [before, now] = [this.standing.record === true, standing.record === true];
    this.change(() => (this.standing = standing));
    if (before === now || !this.participant) return;
    const text = now ? 'The room is recorded from now on.' : 'The recording has ended.';
    this.remark(text);
    notice('info', text);
  }

  /** Leaves: the end of its handles tells the server. */
  close(): void {
    this.suspend();
    this.lines = [];
    this.hand = false;
    this.gone = '';
    this.standing = {};
    this.pinned = null;
    this.unread = 0;
    this.sending.stop();
    this.draw();
  }

  /** The server has forgotten this participant: what the user has chosen stays for the next time. */
  suspend(): void {
    const participant = this.participant;
    this.participant = null;
    participant?.hangup();
    participant?.close();
    this.subscription?.close();
    this.subscription = null;
    this.endFigures?.();
    this.figures.stop();
    this.others.clear();
    this.seen.clear();
    this.wishes.forget();
    this.moderationSecret = null;
    this.asksSecret = false;
    this.dominant = this.speaker = null;
    this.sending.lost();
    this.draw();
  }

  /** Receives everybody, or the most recent speakers, on a new connection. */
  private receive(): void {
    const { session, participant, entry } = this;
    if (!session || !participant) return;
    this.subscription?.close();
    this.wishes.forget();
    const last = Number(this.follow);
    const { pin } = entry;
    const subscription: Subscription = new Subscription(
      session,
      { room: participant.room, ...(pin && { pin }), private_id: participant.privateId, ...(last > 0 && { last_n: last }) },
      {
        changed: () => this.draw(),
        track: (feed, mid, track) => this.track(feed, mid, track),
        layers: (feed, mid, event) => {
          const seen = this.of(keyOf(feed, mid));
          seen.layer = seen.layers.update(event) ?? seen.layer;
        },
        said: (feed, text) => this.said(this.others.get(String(feed))?.name ?? 'Somebody', text),
        connected: (up, ending) => {
          if (up || subscription !== this.subscription) this.attempts = 0;
          else this.again(ending, 'The others are not received any more.', () => this.resubscribe());
        },
        failed: (error) => notice('error', `The others cannot be received: ${explain(error)}`),
      },
    );
    this.subscription = subscription;
    this.subscribe();
  }

  private readonly events: RoomEvents = {
    feeds: (feeds) => {
      for (const feed of feeds) if (!feed.dummy) this.announce(feed);
      this.subscribe();
    },
    joining: (feed) => {
      if (this.others.has(String(feed.id))) return;
      this.announce({ ...feed, streams: [] });
      this.draw();
    },
    renamed: (id, display) => this.update(id, (person) => ({ ...person, display, name: display || person.name })),
    does: (id, metadata) => this.update(id, (person) => {
      if (metadata.hand && !person.metadata?.hand) this.remark(`${person.name} raises a hand.`);
      return { ...person, metadata };
    }),
    unpublished: (id) => {
      this.update(id, (person) => ({ ...person, streams: [] }));
      this.subscribe();
    },
    left: (id, kicked) => {
      const person = this.others.get(String(id));
      if (!person) return;
      this.others.delete(String(id));
      this.gone = person.name;
      this.remark(kicked ? `${person.name} was removed.` : `${person.name} left.`);
      this.subscribe();
    },
    moderated: (id, mid, muted) => {
      if (id === this.participant?.id) {
        return notice('info', muted ? 'A moderator has muted what you send.' : 'A moderator lets the others see and hear you again.');
      }
      const moderated = (stream: FeedStream) => (stream.mid === mid ? { ...stream, moderated: muted } : stream);
      this.update(id, (person) => ({ ...person, streams: (person.streams ?? []).map(moderated) }));
    },
    dominant: (id) => this.change(() => (this.dominant = this.speaker = id)),
    ended: (why) => {
      this.close();
      this.ended(why === 'kicked' ? 'A moderator has removed you from the room.' : 'The room was closed.');
    },
    connected: (up, ending) => {
      if (up) this.attempts = 0;
      if (up || !this.participant) return;
      this.sending.lost();
      this.again(ending, 'What you send is not received any more.', () => void this.sending.start());
    },
  };

  private announce(feed: Feed): void {
    const known = this.others.get(String(feed.id));
    const name = feed.display || `Guest ${feed.id}`;
    this.others.set(String(feed.id), { ...feed, metadata: feed.metadata ?? known?.metadata, name, own: false });
    if (!known && this.participant) this.remark(`${name} joined.`);
    this.subscription?.announced(feed);
  }

  private update(id: Id, change: (person: Person) => Person): void {
    const person = this.others.get(String(id));
    if (person) this.change(() => this.others.set(String(id), change(person)));
  }

  private subscribe(): void {
    this.draw();
    this.subscription?.want(this.others.values());
  }

  private resubscribe(): void {
    this.wishes.forget();
    this.subscription?.restart();
  }

  /** A connection ended. Some times it is made anew at once, then the user is asked. */
  private again(ending: Ending | undefined, what: string, run: () => void): void {
    this.attempts += 1;
    const { participant } = this;
    const isHere = () => participant === this.participant && participant !== null;
    if (this.attempts <= ATTEMPTS) return void setTimeout(() => isHere() && run(), AGAIN);
    endNotice(what, ending ?? { reason: 'no reason given' }, {
      label: 'Connect again',
      id: 'again',
      run: () => {
        clearNotice();
        this.attempts = 0;
        if (isHere()) run();
      },
    });
  }

  private track(feed: Id, mid: string, track: MediaStreamTrack): void {
    const key = keyOf(feed, mid);
    if (track.kind === 'audio') return this.sounds.play(key, track);
    this.change(() => (this.of(key).track = track));
  }

  /** A secret is tried by asking something that needs it. */
  private async moderate(secret: string): Promise<void> {
    await this.participant?.ask({ request: 'listforwarders', ...(secret && { secret }) });
    clearNotice();
    this.change(() => (this.moderationSecret = secret));
  }

  private async record(on: boolean): Promise<void> {
    try {
      await this.participant?.ask({ request: 'enable_recording', record: on, ...this.secret() });
      this.stands({ ...this.standing, record: on });
      if (!on) notice('info', 'The recording has ended. Its files are in the folder of recordings of the server: whoever runs it makes one film of them (“portunus recordings compose”).', [{ label: 'OK', id: 'recorded', run: clearNotice }]);
    } catch (error) {
      if (!(error instanceof Refused) || ![CODES.missing, CODES.unauthorized].includes(error.code as never)) throw error;
      // Only a moderator may.
      this.change(() => {
        this.panels = { ...this.panels, people: true };
        this.asksSecret = true;
      });
      notice('warning', 'Recording takes the secret of the room. Enter it under “Moderate”, then record.');
    }
  }

  private secret(): { secret?: string } {
    return this.moderationSecret ? { secret: this.moderationSecret } : {};
  }

  private async say(text: string): Promise<boolean> {
    try {
      await this.participant?.say(text);
      if (this.participant) this.line('sent', text);
      return this.participant !== null;
    } catch (error) {
      notice('warning', explain(error));
      return false;
    }
  }

  private said(name: string, data: unknown): void {
    const text = typeof data === 'string' ? data : `${(data as ArrayBuffer).byteLength} bytes`;
    if (!this.panels.chat || document.hidden) this.unread += 1;
    this.line('received', `${name}: ${text}`);
  }

  /** Something that nobody said. */
  private remark(text: string): void {
    this.line('soft', text);
  }

  private line(kind: Line['kind'], text: string): void {
    this.change(() => (this.lines = [...this.lines, { kind, text, at: new Date() }].slice(-LINES)));
  }

  private streams(): { key: string; feed: Id; stream: FeedStream }[] {
    return this.shown().flatMap((person) =>
      (person.streams ?? []).filter((stream) => !stream.disabled).map((stream) => ({ key: keyOf(person.id, stream.mid), feed: person.id, stream })),
    );
  }

  /** The others with what of them is to be seen and heard: all, or what the server has chosen. */
  private shown(): Person[] {
    const { subscription } = this;
    const others = [...this.others.values()];
    if (!subscription?.follows) return others;
    return others.map((person) => ({
      ...person,
      streams: (person.streams ?? []).filter((stream) => subscription.midOf(person.id, stream.mid) !== undefined),
    }));
  }

  private of(key: string): Seen {
    let seen = this.seen.get(key);
    if (!seen) this.seen.set(key, (seen = { track: null, layers: new ReceivedLayers(), layer: '', chosen: {}, silent: 0 }));
    return seen;
  }

  private change(change: () => void): void {
    change();
    this.draw();
  }

  private draw(): void {
    const state = this.state();
    render(<Meeting state={state} actions={this.actions} />, element('meeting'));
    this.sounds.keep(new Set(this.streams().map(({ key }) => key)));
    this.tellDoing();
    const { large, tiles } = state;
    const seated = this.subscription?.follows === true;
    this.wishes.update(
      tiles
        .map((tile, index) => ({ ...tile.chosen, key: tile.id, layering: tile.layering, large: index === large, small: this.hidden || (large >= 0 && index !== large), seated, isUp: tile.track !== null && !tile.own }))
        .filter(({ isUp }) => isUp),
    );
    document.title = this.unread > 0 && document.hidden ? `(${this.unread}) ${this.title}` : this.title;
  }

  private state(): MeetingState {
    const sent = (slot: Slot) => this.sending?.track(slot) ?? null;
    const muted = { audio: this.sending?.isMuted('audio') ?? false, video: this.sending?.isMuted('video') ?? false };
    const tiles = this.participant ? [...this.ownTiles(sent, muted), ...this.shown().flatMap((person) => this.tilesOf(person))] : [];
    const own: Person = { id: this.participant?.id ?? 0, name: this.entry.display, own: true, streams: ownStreams(sent), metadata: this.doing() };
    return {
      title: this.participant?.description ?? '',
      standing: this.standing,
      tiles,
      large: this.large(tiles),
      pinned: this.pinned,
      details: this.details,
      tick: this.tick,
      sends: { audio: sent('audio') !== null, video: sent('video') !== null, screen: sent('screen') !== null },
      muted,
      hand: this.hand,
      panels: this.panels,
      unread: this.unread,
      people: this.participant ? [own, ...this.others.values()] : [],
      moderating: this.moderationSecret !== null,
      asksSecret: this.asksSecret,
      lines: this.lines,
      gone: this.gone,
      keys: this.keys,
      follow: this.follow,
      bitrate: this.limit,
    };
  }

  /** The index of the picture that is large: the one that the user wants so, a screen, or whoever speaks. */
  private large(tiles: TileProps[]): number {
    const find = (test: (tile: TileProps) => boolean) => tiles.findIndex(test);
    const pinned = find(({ id }) => id === this.pinned);
    if (pinned >= 0) return pinned;
    const screen = find((tile) => tile.screen && !tile.own);
    if (this.view === 'auto' && screen >= 0) return screen;
    if (this.view === 'grid' || (this.view === 'auto' && tiles.length < MANY)) return -1;
    const speaker = find(({ id }) => this.speaker !== null && id.startsWith(keyOf(this.speaker, '')));
    return speaker >= 0 ? speaker : Math.max(find(({ own }) => !own), 0);
  }

  private ownTiles(sent: (slot: Slot) => MediaStreamTrack | null, muted: { audio: boolean; video: boolean }): TileProps[] {
    const own = (id: string, name: string, track: MediaStreamTrack | null, screen: boolean): TileProps => ({
      id, name, person: this.entry.display, track, screen, own: true, muted: !screen && muted.audio, hand: !screen && this.hand, talking: false, layering: null, ...this.shownOf(id),
    });
    const screen = sent('screen');
    return [own(OWN_CAMERA, 'You', muted.video ? null : sent('video'), false), ...(screen ? [own(OWN_SCREEN, 'Your screen', screen, true)] : [])];
  }

  private shownOf(key: string): Pick<TileProps, 'figures' | 'layer' | 'chosen' | 'stalled'> {
    const { figures, layer, chosen, silent } = this.of(key);
    return { figures, layer, chosen, stalled: silent >= STALLED };
  }

  /** A tile for each picture that somebody sends; who sends sound alone has an empty one, who watches has none. */
  private tilesOf(person: Person): TileProps[] {
    const common = { own: false, person: person.name, muted: isMuted(person), hand: person.metadata?.hand === true, talking: person.id === this.speaker };
    const pictures = live(person, 'video').map((stream) => {
      const id = keyOf(person.id, stream.mid);
      const isCamera = !stream.description;
      const off = stream.moderated || (isCamera && person.metadata?.video === false);
      return {
        ...common,
        ...this.shownOf(id),
        id,
        name: isCamera ? person.name : `${person.name}: ${stream.description}`,
        screen: !isCamera,
        track: off ? null : this.of(id).track,
        layering: (stream.simulcast ? 'simulcast' : stream.svc ? 'svc' : null) as Layering,
      };
    });
    if (pictures.length > 0 || live(person, 'audio').length === 0) return pictures;
    const id = keyOf(person.id, '');
    return [{ ...common, ...this.shownOf(id), stalled: false, id, name: person.name, screen: false, track: null, layering: null }];
  }

  private doing(): Doing {
    return { audio: !this.sending?.isMuted('audio'), video: !this.sending?.isMuted('video'), hand: this.hand };
  }

  /** Tells the others what is muted, and of the hand, if that has changed. */
  private tellDoing(): void {
    const metadata = this.doing();
    const text = JSON.stringify(metadata);
    if (!this.participant || text === this.told) return;
    this.told = text;
    this.participant.configure({ metadata }).catch(() => (this.told = ''));
  }

  private readFigures(): void {
    this.endFigures?.();
    this.endFigures = everySeen(SECOND, () => {
      const [received, sent] = [new Rates('inbound'), new Rates('outbound')];
      return () => void this.showFigures(received, sent);
    });
  }

  private async showFigures(received: Rates, sent: Rates): Promise<void> {
    const { subscription, participant } = this;
    const inbound = await received.read(subscription?.peerConnection);
    const outbound = await sent.read(participant?.peerConnection);
    if (this.participant !== participant || !participant) return;
    for (const [key, slot] of [[OWN_CAMERA, 'video'], [OWN_SCREEN, 'screen']] as const) {
      const track = this.sending.track(slot);
      this.of(key).figures = outbound.get((track && participant.midOf(track)) ?? '');
    }
    let loudest: { feed: Id; level: number } | null = null;
    for (const { key, feed, stream } of this.streams()) {
      const figures = inbound.get(subscription?.midOf(feed, stream.mid) ?? '');
      const seen = this.of(key);
      seen.figures = figures;
      seen.silent = figures?.bitrate === 0 ? seen.silent + 1 : 0;
      if (stream.type === 'audio' && figures && figures.level > Math.max(SPEAKING, loudest?.level ?? 0)) loudest = { feed, level: figures.level };
    }
    if (this.dominant === null && loudest) this.speaker = loudest.feed;
    this.change(() => (this.tick += 1));
  }

  private run(work: Promise<unknown> | undefined): void {
    work?.catch((error: unknown) => notice('error', explain(error)));
  }
}

function ownStreams(sent: (slot: Slot) => MediaStreamTrack | null): FeedStream[] {
  return (['audio', 'video', 'screen'] as const).flatMap((slot) => {
    if (!sent(slot)) return [];
    return [{ type: slot === 'audio' ? 'audio' : 'video', mid: slot, ...(slot === 'screen' && { description: 'Screen' }) } as FeedStream];
  });
}
