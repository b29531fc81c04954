// A room while one is in it: who is there, what they send, what is said.
import { clearNotice, element, notice } from '../page';
import { FiguresPanel } from '../figures';
import { everySeen, SECOND } from '../seen';
import type { Session } from '../session';
import type { Setup } from '../setup';
import { explain, keyOf, type Feed, type FeedStream, type Id } from './api';
import { Chat } from './chat';
import { Grid, type Layering, type TileOptions } from './grid';
import { Participant, type JoinOptions, type RoomEvents } from './participant';
import { People, type Person } from './people';
import { Rates } from './rates';
import { Sending } from './sending';
import { Sounds } from './sounds';
import { live, Subscription } from './subscription';

/** How loud somebody has to be to be shown as speaking; 1 is the loudest. */
const SPEAKING = 0.01;

const OWN_CAMERA = 'own/camera';
const OWN_SCREEN = 'own/screen';

export class Conference {
  private participant: Participant | null = null;
  private subscription: Subscription | null = null;
  private ownName = '';
  private readonly others = new Map<string, Person>();
  /** The state of a lost connection, and its recovery. */
  private readonly lost = new Map<string, () => void>();
  private moderationSecret: string | null = null;
  /** Who has the floor, in rooms that tell. */
  private dominant: Id | null = null;
  private session: Session | null = null;
  private pin?: string;
  private readonly follow = element<HTMLSelectElement>('follow');
  private endFigures?: () => void;

  private readonly sending: Sending;
  private readonly figures = new FiguresPanel(element('figures'), { receiveOnly: true, manyStreams: true });
  private readonly sounds = new Sounds(element('sounds'), () => {
    notice('info', 'The browser waits for you before it plays sound.', [{ label: 'Play sound', id: 'play-sound', run: () => { clearNotice(); this.sounds.resume(); } }]);
  });
  private readonly grid = new Grid(element('tiles'), {
    layers: (key, settings) => {
      const of = this.streams().find((one) => one.key === key);
      if (of) this.subscription?.configure(of.feed, of.stream.mid, settings);
    },
  });
  private readonly people = new People(element('people'), {
    mute: (id, stream, mute) => this.run(this.participant?.ask({ request: 'moderate', id, mid: stream.mid, mute, ...this.secret() })),
    kick: (id) => this.run(this.participant?.ask({ request: 'kick', id, ...this.secret() })),
  });
  private readonly chat = new Chat(
    () => this.participant?.prepareToSay().catch((error: unknown) => notice('warning', explain(error))),
    async (text) => {
      try {
        await this.participant?.say(text);
        return this.participant !== null;
      } catch (error) {
        notice('warning', explain(error));
        return false;
      }
    },
  );

  /** `ended` is called when the room is over without having been left; its text says why. */
  constructor(setup: Setup, private readonly ended: (why: string) => void) {
    this.sending = new Sending(setup, () => this.participant, () => this.draw());
    const view = element<HTMLButtonElement>('view');
    view.addEventListener('click', () => {
      const speaker = view.getAttribute('aria-pressed') !== 'true';
      view.setAttribute('aria-pressed', String(speaker));
      this.grid.view(speaker ? 'speaker' : 'grid');
    });
    this.follow.addEventListener('change', () => this.receive());
    element<HTMLFormElement>('moderate-form').addEventListener('submit', (event) => {
      event.preventDefault();
      this.run(this.moderate(element<HTMLInputElement>('secret').value));
    });
  }

  /** Joins, shows the room, and sends what the form says. */
  async enter(session: Session, options: JoinOptions, secret: string): Promise<void> {
    this.ownName = options.display;
    this.chat.clear();
    this.participant = await Participant.join(session, options, this.events);
    this.session = session;
    this.pin = options.pin;
    element('room-title').textContent = this.participant.description;
    element('meeting').hidden = false;
    this.receive();
    this.figures.start(() => this.subscription?.peerConnection ?? null);
    this.readFigures();
    if (secret) this.run(this.moderate(secret));
    void this.sending.start();
  }

  /** Receives everybody, or the most recent speakers, on a new connection. */
  private receive(): void {
    const { session, participant, pin } = this;
    if (!session || !participant) return;
    this.subscription?.close();
    this.grid.repeatLayers();
    const last = Number(this.follow.value);
    this.subscription = new Subscription(
      session,
      { room: participant.room, ...(pin && { pin }), private_id: participant.privateId, ...(last > 0 && { last_n: last }) },
      {
        changed: () => this.draw(),
        track: (feed, mid, track) => this.track(feed, mid, track),
        layers: (feed, mid, event) => this.grid.layers(keyOf(feed, mid), event),
        said: (feed, text) => this.chat.said(this.others.get(String(feed))?.name ?? 'Somebody', text),
        connected: (up, reason) => {
          if (!up && this.subscription) this.offerAgain('pictures and sounds of the others', reason, () => this.resubscribe());
        },
        failed: (error) => notice('error', `The others cannot be received: ${explain(error)}`),
      },
    );
    this.subscribe();
  }

  async leave(): Promise<void> {
    const participant = this.participant;
    this.close();
    await participant?.leave();
  }

  /** Ends everything on this side, without a request to the server. */
  close(): void {
    const participant = this.participant;
    this.participant = null;
    participant?.hangup();
    this.subscription?.close();
    this.subscription = null;
    this.endFigures?.();
    this.figures.stop();
    this.others.clear();
    this.lost.clear();
    this.moderationSecret = null;
    // The next room has another.
    element<HTMLInputElement>('secret').value = '';
    this.dominant = null;
    this.sending.stop();
    this.draw();
    element('meeting').hidden = true;
  }

  private readonly events: RoomEvents = {
    feeds: (feeds) => {
      for (const feed of feeds) if (!feed.dummy) this.announce(feed);
      this.subscribe();
    },
    joining: (id, display) => {
      if (this.others.has(String(id))) return;
      this.announce({ id, display, streams: [] });
      this.draw();
    },
    renamed: (id, display) => {
      const person = this.others.get(String(id));
      if (person) this.announce({ ...person, display });
      this.draw();
    },
    unpublished: (id) => {
      const person = this.others.get(String(id));
      if (person) this.others.set(String(id), { ...person, streams: [] });
      this.subscribe();
    },
    left: (id, kicked) => {
      const person = this.others.get(String(id));
      if (!person) return;
      this.others.delete(String(id));
      this.chat.remark(kicked ? `${person.name} was removed.` : `${person.name} left.`);
      this.subscribe();
    },
    moderated: (id, mid, muted) => this.moderated(id, mid, muted),
    dominant: (id) => {
      this.dominant = id;
      this.grid.speaker(keyOf(id, ''));
    },
    ended: (why) => {
      this.participant?.close();
      this.close();
      this.ended(why === 'kicked' ? 'A moderator has removed you from the room.' : 'The room was closed.');
    },
    connected: (up, reason) => {
      if (up || !this.participant) return;
      this.sending.lost();
      this.offerAgain('what you send', reason, () => void this.sending.start());
    },
  };

  private announce(feed: Feed): void {
    const known = this.others.get(String(feed.id));
    const name = feed.display || `Guest ${feed.id}`;
    this.others.set(String(feed.id), { ...feed, name, own: false });
    if (!known && this.participant) this.chat.remark(`${name} joined.`);
    this.subscription?.announced(feed);
  }

  private subscribe(): void {
    this.draw();
    this.subscription?.want(this.others.values());
  }

  private resubscribe(): void {
    clearNotice();
    this.grid.repeatLayers();
    this.subscription?.restart();
  }

  private track(feed: Id, mid: string, track: MediaStreamTrack): void {
    const key = keyOf(feed, mid);
    if (track.kind === 'audio') this.sounds.play(key, track);
    else this.grid.track(key, track);
  }

  private moderated(id: Id, mid: string, muted: boolean): void {
    if (id === this.participant?.id) {
      return notice('info', muted ? 'A moderator has muted what you send.' : 'A moderator lets the others see and hear you again.');
    }
    const person = this.others.get(String(id));
    if (!person) return;
    const streams = (person.streams ?? []).map((stream) => (stream.mid === mid ? { ...stream, moderated: muted } : stream));
    this.others.set(String(id), { ...person, streams });
    this.draw();
  }

  /** A secret is tried by asking something that needs it. */
  private async moderate(secret: string): Promise<void> {
    await this.participant?.ask({ request: 'listforwarders', ...(secret && { secret }) });
    this.moderationSecret = secret;
    clearNotice();
    this.draw();
  }

  private secret(): { secret?: string } {
    return this.moderationSecret ? { secret: this.moderationSecret } : {};
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

  private draw(): void {
    const own: Person = { id: this.participant?.id ?? 0, name: this.ownName, own: true, streams: this.ownStreams() };
    const others = [...this.others.values()];
    const screen = this.sending.track('screen');
    this.grid.show(
      this.participant
        ? [
            tile(OWN_CAMERA, 'You', null, { own: true, muted: this.sending.isMuted('audio') }),
            ...(screen ? [tile(OWN_SCREEN, 'Your screen', null, { own: true })] : []),
            ...this.shown().flatMap((person) => tilesOf(person, !!this.subscription?.follows)),
          ]
        : [],
    );
    this.grid.track(OWN_CAMERA, this.sending.isMuted('video') ? null : this.sending.track('video'));
    this.grid.track(OWN_SCREEN, screen);
    this.sounds.keep(new Set(this.streams().map(({ key }) => key)));
    this.people.show(this.participant ? [own, ...others] : [], this.moderationSecret !== null);
    element('alone').hidden = others.length > 0;
  }

  private ownStreams(): FeedStream[] {
    return (['audio', 'video', 'screen'] as const).flatMap((slot) => {
      if (!this.sending.track(slot)) return [];
      return [{ type: slot === 'audio' ? 'audio' : 'video', mid: slot, ...(slot === 'screen' && { description: 'Screen' }) } as FeedStream];
    });
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
      this.grid.figures(key, outbound.get((track && participant.midOf(track)) ?? ''));
    }
    let loudest: { feed: Id; level: number } | null = null;
    for (const { key, feed, stream } of this.streams()) {
      const figures = inbound.get(subscription?.midOf(feed, stream.mid) ?? '');
      if (stream.type === 'video') this.grid.figures(key, figures);
      else if (figures && figures.level > Math.max(SPEAKING, loudest?.level ?? 0)) loudest = { feed, level: figures.level };
    }
    if (this.dominant === null) this.grid.speaker(loudest && keyOf(loudest.feed, ''));
  }

  /** There is one notice, which brings back all that was lost. */
  private offerAgain(what: string, reason: string | undefined, run: () => void): void {
    this.lost.set(what, run);
    const connectAgain = (): void => {
      clearNotice();
      const runs = [...this.lost.values()];
      this.lost.clear();
      for (const run of runs) run();
    };
    notice('warning', `The connection was lost (${reason ?? 'no reason given'}): ${[...this.lost.keys()].join(', ')}.`, [
      { label: 'Connect again', id: 'again', run: connectAgain },
    ]);
  }

  private run(work: Promise<unknown> | undefined): void {
    work?.catch((error: unknown) => notice('error', explain(error)));
  }
}

function tile(key: string, name: string, layering: Layering, { own = false, muted = false, seated = false }): TileOptions {
  return { key, name, layering, own, muted, seated };
}

/** A tile for each picture that somebody sends; who sends sound alone has an empty one, who watches has none. */
function tilesOf(person: Person, seated: boolean): TileOptions[] {
  const muted = live(person, 'audio').some((stream) => stream.moderated);
  const pictures = live(person, 'video').map((stream) => {
    const name = stream.description ? `${person.name}: ${stream.description}` : person.name;
    return tile(keyOf(person.id, stream.mid), name, stream.simulcast ? 'simulcast' : stream.svc ? 'svc' : null, {
      muted: muted || !!stream.moderated,
      seated,
    });
  });
  if (pictures.length > 0 || live(person, 'audio').length === 0) return pictures;
  return [tile(keyOf(person.id, ''), person.name, null, { muted })];
}
