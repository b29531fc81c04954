// The view of a room: the pictures, the bar of controls, and the panels beside them.
import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { listeners, type Standing } from '../listening';
import { Icon, type IconName } from '../icon';
import { Chat, type Line } from './chat';
import { besideLarge, evenly } from './layout';
import { People, type PeopleActions, type Person } from './people';
import { Tile, type TileProps } from './tile';
import type { Chosen } from './wishes';

const NARROW = window.matchMedia('(max-width: 40rem)');

export interface Panels {
  people: boolean;
  chat: boolean;
  settings: boolean;
}

/** All that the view shows. */
export interface MeetingState {
  title: string;
  standing: Standing;
  tiles: TileProps[];
  /** The index of the large picture; -1: all are as large. */
  large: number;
  pinned: string | null;
  details: boolean;
  /** Grows with each reading of the figures. */
  tick: number;
  sends: { audio: boolean; video: boolean; screen: boolean };
  muted: { audio: boolean; video: boolean };
  hand: boolean;
  panels: Panels;
  unread: number;
  people: Person[];
  moderating: boolean;
  /** The user wants what takes the room's secret. */
  asksSecret: boolean;
  lines: Line[];
  /** Who left last, while nobody else is there. */
  gone: string;
  /** Single letters are keys. */
  keys: boolean;
  follow: string;
  bitrate: string;
}

export interface MeetingActions extends PeopleActions {
  publish(): void;
  toggleMute(medium: 'audio' | 'video'): void;
  toggleScreen(): void;
  toggleHand(): void;
  toggleView(): void;
  toggleDetails(): void;
  toggle(panel: keyof Panels): void;
  toggleKeys(): void;
  enlarge(key: string): void;
  choose(key: string, chosen: Chosen): void;
  moderate(secret: string): void;
  record(on: boolean): void;
  prepareToSay(): void;
  say(text: string): Promise<boolean>;
  follow(last: string): void;
  limit(kbit: string): void;
}

export function Meeting({ state, actions }: { state: MeetingState; actions: MeetingActions }) {
  const { panels } = state;
  const narrow = useNarrow();
  const fullText = useFullScreen() ? 'Leave full screen' : 'Full screen';
  return (
    <>
      <div class="meeting-top row">
        <h2 id="room-title" class="grow" data-testid="room-title" tabIndex={-1}>{state.title}</h2>
        {listeners(state.standing).map(({ id, text }) => <span key={id} class="badge danger" data-testid={id}>{text}</span>)}
        <span class="soft" data-testid="present">{state.people.length} here</span>
        <button type="button" id="copy-link" data-testid="copy-link" aria-label="Link to share" title="Link to share"><Icon name="link" /> <span class="text">Link to share</span></button>
        {document.fullscreenEnabled && (
          <button type="button" data-testid="fullscreen" aria-label={fullText} title={`${fullText} (F)`} onClick={toggleFullScreen}><Icon name="full" /> <span class="text">{fullText}</span></button>
        )}
        <input id="link" data-testid="link" readOnly aria-label="Link to the room" hidden />
      </div>
      <Stage state={state} actions={actions} />
      <aside class="meeting-side" hidden={!panels.people && !panels.chat && !panels.settings}>
        <Settings state={state} actions={actions} narrow={narrow} />
        {panels.people && <PeoplePanel state={state} actions={actions} />}
        {panels.chat && <Chat lines={state.lines} prepare={actions.prepareToSay} send={actions.say} close={() => actions.toggle('chat')} />}
      </aside>
      <Bar state={state} actions={actions} narrow={narrow} />
    </>
  );
}

interface Part {
  state: MeetingState;
  actions: MeetingActions;
}

function Stage({ state, actions }: Part) {
  const root = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState({ width: 0, height: 0 });
  useLayoutEffect(() => {
    const observer = new ResizeObserver(([entry]) => entry && setSize({ width: entry.contentRect.width, height: entry.contentRect.height }));
    if (root.current) observer.observe(root.current);
    return () => observer.disconnect();
  }, []);
  const { tiles, large } = state;
  const boxes = large < 0 ? evenly(tiles.length, size.width, size.height) : besideLarge(tiles.length, large, size.width, size.height);
  const unseen = boxes.filter((box) => box === null).length;
  return (
    <div class="stage">
      <div class="tiles" ref={root} data-testid="tiles" data-view={large < 0 ? 'grid' : 'speaker'}>
        {tiles.map((tile, index) => (
          <Tile
            {...tile}
            key={tile.id}
            box={boxes[index] ?? null}
            large={index === large}
            pinned={tile.id === state.pinned}
            details={state.details}
            tick={state.tick}
            enlarge={() => actions.enlarge(tile.id)}
            choose={(chosen) => actions.choose(tile.id, chosen)}
          />
        ))}
      </div>
      {unseen > 0 && <p class="unseen" data-testid="unseen">and {unseen} more</p>}
      {state.people.length < 2 && (
        <p class="alone" id="alone">
          {state.gone ? `${state.gone} left: nobody else is here now.` : 'Nobody else is here yet.'} <button type="button" class="plain" onClick={() => document.getElementById('copy-link')?.click()}>Copy the link for others</button>
        </p>
      )}
    </div>
  );
}

function PeoplePanel({ state, actions }: Part) {
  const [secret, setSecret] = useState('');
  return (
    <section aria-labelledby="people-title">
      <Head id="people-title" text={`People (${state.people.length})`} close={() => actions.toggle('people')} />
      <People people={state.people} moderating={state.moderating} actions={actions} />
      {!state.moderating && (
        <details open={state.asksSecret}>
          <summary data-testid="moderate-open">Moderate: mute or remove people</summary>
          <form class="text-form" onSubmit={(event) => (event.preventDefault(), actions.moderate(secret))}>
            <input
              data-testid="secret"
              type="password"
              autocomplete="off"
              placeholder="Secret of the room, if it has one"
              aria-label="Secret of the room"
              value={secret}
              onInput={(event) => setSecret(event.currentTarget.value)}
            />
            <button data-testid="moderate">Moderate</button>
          </form>
        </details>
      )}
    </section>
  );
}

/** The head of a panel, which it closes. */
function Head({ id, text, close }: { id: string; text: string; close(): void }) {
  return (
    <div class="row panel-head">
      <h3 id={id} class="grow">{text}</h3>
      <button type="button" class="close" aria-label={`Close ${text}`} title="Close" onClick={close}>✕</button>
    </div>
  );
}

const FOLLOW = [['0', 'Everybody'], ['1', 'Who speaks'], ['4', 'The last 4 who spoke'], ['9', 'The last 9 who spoke']] as const;
const LIMITS = [['0', 'As the room allows'], ['128', '128 kbit/s'], ['256', '256 kbit/s'], ['512', '512 kbit/s'], ['1024', '1 Mbit/s'], ['2048', '2 Mbit/s']] as const;

/** It is always there, since the choice of devices is put into it. */
function Settings({ state, actions, narrow }: Part & { narrow: boolean }) {
  return (
    <section aria-labelledby="settings-title" hidden={!state.panels.settings}>
      <Head id="settings-title" text="More" close={() => actions.toggle('settings')} />
      <div class="row">
        {narrow && <RecordButton state={state} actions={actions} />}
        {narrow && <HandButton state={state} actions={actions} />}
        <button type="button" data-testid="view" aria-pressed={state.large >= 0} title="L" onClick={actions.toggleView}><Icon name="layout" /> Speaker large</button>
        <button type="button" data-testid="details" aria-pressed={state.details} title="D" onClick={actions.toggleDetails}><Icon name="details" /> Figures and layers</button>
      </div>
      <div class="fields" id="room-devices" />
      <div class="fields">
        <div>
          <label for="follow">Whom to see and hear</label>
          <select id="follow" data-testid="follow" value={state.follow} onChange={(event) => actions.follow(event.currentTarget.value)}>
            {FOLLOW.map(([value, text]) => <option value={value}>{text}</option>)}
          </select>
        </div>
        <div>
          <label for="bitrate">Most that is sent</label>
          <select id="bitrate" data-testid="bitrate" value={state.bitrate} onChange={(event) => actions.limit(event.currentTarget.value)}>
            {LIMITS.map(([value, text]) => <option value={value}>{text}</option>)}
          </select>
        </div>
      </div>
      <div hidden={!state.details}>
        <h3>Receiving <small class="soft">plots: last minute</small></h3>
        <dl class="figures" id="figures" data-testid="figures" />
      </div>
      <label class="check"><input type="checkbox" data-testid="keys" checked={state.keys} onChange={actions.toggleKeys} /> Single letters are keys</label>
      <p class="soft">M microphone, V camera, S screen, H hand, C chat, P people, L layout, D figures, F full screen; not while the chat is open.</p>
    </section>
  );
}

function Bar({ state, actions, narrow }: Part & { narrow: boolean }) {
  const { sends, muted, panels } = state;
  const sending = sends.audio || sends.video;
  useKeys(actions, sending, state.keys && !panels.chat);
  return (
    <div class="bar" role="toolbar" aria-label="Controls">
      {!sending && <Button key="publish" id="publish" icon="camera" text={narrow ? 'Send' : 'Send camera and microphone'} name="Send camera and microphone" kind="primary" run={actions.publish} />}
      {sends.audio && <Button key="mute-audio" id="mute-audio" icon={muted.audio ? 'mic-off' : 'mic'} text={muted.audio ? 'Muted' : 'Mute'} name="Mute sound" hint="M" kind="mutes" pressed={muted.audio} run={() => actions.toggleMute('audio')} />}
      {sends.video && <Button key="mute-video" id="mute-video" icon={muted.video ? 'camera-off' : 'camera'} text={muted.video ? 'Cam off' : 'Camera'} name="Stop picture" hint="V" kind="mutes" pressed={muted.video} run={() => actions.toggleMute('video')} />}
      {'getDisplayMedia' in (navigator.mediaDevices ?? {}) && (
        <Button key="screen" id="screen" icon="screen" text={sends.screen ? 'Stop sharing' : 'Share'} name="Share screen" hint="S" pressed={sends.screen} run={actions.toggleScreen} />
      )}
      {!narrow && <HandButton state={state} actions={actions} />}
      {!narrow && <RecordButton state={state} actions={actions} />}
      <span class="space" />
      <Button key="open-chat" id="open-chat" icon="chat" text="Chat" hint="C" pressed={panels.chat} run={() => actions.toggle('chat')}>
        {state.unread > 0 && <span class="count" data-testid="unread">{state.unread}</span>}
      </Button>
      <Button key="open-people" id="open-people" icon="people" text="People" hint="P" pressed={panels.people} run={() => actions.toggle('people')} />
      <Button key="settings" id="settings" icon="settings" text="More" pressed={panels.settings} run={() => actions.toggle('settings')} />
      <span class="space" />
      <Button key="leave" id="leave" icon="leave" text="Leave" kind="end" />
    </div>
  );
}

function HandButton({ state, actions }: Part) {
  return <Button key="hand" id="hand" icon="hand" text={state.hand ? 'Lower hand' : 'Raise hand'} name="Raise hand" hint="H" pressed={state.hand} run={actions.toggleHand} />;
}

function RecordButton({ state, actions }: Part) {
  const on = state.standing.record === true;
  return <Button key="record" id="record" icon="record" text={on ? 'Stop' : 'Record'} name="Record the room" pressed={on} run={() => actions.record(!on)} />;
}

/** Whether the window is as narrow as a phone's. */
function useNarrow(): boolean {
  const [narrow, setNarrow] = useState(NARROW.matches);
  useEffect(() => {
    const changed = (): void => setNarrow(NARROW.matches);
    NARROW.addEventListener('change', changed);
    return () => NARROW.removeEventListener('change', changed);
  }, []);
  return narrow;
}

interface ButtonProps {
  id: string;
  icon: IconName;
  text: string;
  /** What screen readers say, if the text alone would not do. */
  name?: string;
  hint?: string;
  kind?: string;
  pressed?: boolean;
  run?(): void;
  children?: ComponentChildren;
}

function Button({ id, icon, text, name, hint, kind, pressed, run, children }: ButtonProps) {
  return (
    <button type="button" id={id} data-testid={id} class={kind} aria-pressed={pressed} aria-label={name ?? text} title={hint ? `${name ?? text} (${hint})` : (name ?? text)} onClick={run}>
      <Icon name={icon} />
      <span class="text">{text}</span>
      {children}
    </button>
  );
}

/** Whether something of the page has the whole screen. */
function useFullScreen(): boolean {
  const [full, setFull] = useState(document.fullscreenElement !== null);
  useEffect(() => {
    const changed = (): void => setFull(document.fullscreenElement !== null);
    document.addEventListener('fullscreenchange', changed);
    return () => document.removeEventListener('fullscreenchange', changed);
  }, []);
  return full;
}

/** A browser may refuse it, and says so by itself. */
function toggleFullScreen(): void {
  if (!document.fullscreenEnabled) return;
  const done = document.fullscreenElement ? document.exitFullscreen() : document.documentElement.requestFullscreen();
  done.catch(() => {});
}

/** Keys work unless the user writes or is about to, or nobody is in the room. */
function useKeys(actions: MeetingActions, sending: boolean, wanted: boolean): void {
  useEffect(() => {
    if (!wanted) return;
    const keys: Record<string, () => void> = {
      m: () => (sending ? actions.toggleMute('audio') : actions.publish()),
      v: () => sending && actions.toggleMute('video'),
      s: actions.toggleScreen,
      h: actions.toggleHand,
      c: () => actions.toggle('chat'),
      p: () => actions.toggle('people'),
      l: actions.toggleView,
      d: actions.toggleDetails,
      f: toggleFullScreen,
    };
    const pressed = (event: KeyboardEvent): void => {
      const writes = event.target instanceof Element && event.target.closest('input, select, textarea');
      const away = document.getElementById('meeting')?.hidden;
      if (writes || away || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
      keys[event.key.toLowerCase()]?.();
    };
    document.addEventListener('keydown', pressed);
    return () => document.removeEventListener('keydown', pressed);
  }, [actions, sending, wanted]);
}
