// Plays what a server sends: one picture with its sound, what becomes of it, and what a player is expected to have.
import { render } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { FlowMeter, type Flow } from './flow';
import { Icon } from './icon';
import { everySeen, SECOND } from './seen';
import { duration } from './units';

/** Nothing has come for this long, in seconds: it has stopped. */
const STOPPED = 2;

/** What the player shows at a moment. */
export type Playing = 'connecting' | 'waiting' | 'playing' | 'stopped' | 'paused';

interface Picture {
  mid: string;
  label: string;
  track: MediaStreamTrack;
}

interface State {
  pictures: Picture[];
  sounds: MediaStreamTrack[];
  playing: Playing;
  flow: Flow;
  volume: number;
  muted: boolean;
  /** The browser waits for the user before it plays sound. */
  blocked: boolean;
}

const NOTHING: Flow = { waiting: true };

export class Player {
  private state: State = { pictures: [], sounds: [], playing: 'connecting', flow: NOTHING, volume: 1, muted: false, blocked: false };
  private paused = false;
  private end?: () => void;

  /** `changed` is called with what is shown, in words. */
  constructor(private readonly root: HTMLElement, private readonly changed: (playing: Playing, words: string) => void = () => {}) {}

  /** Follows what comes on a connection. */
  start(connection: () => RTCPeerConnection | null): void {
    this.stop();
    this.paused = false;
    this.change({ playing: 'connecting', flow: NOTHING });
    const meter = new FlowMeter();
    this.end = everySeen(SECOND / 2, () => () => void this.read(meter, connection()));
  }

  /** Whoever has paused wants nothing to come. */
  pause(paused: boolean): void {
    this.paused = paused;
    this.change({ playing: paused ? 'paused' : this.state.playing === 'paused' ? 'playing' : this.state.playing });
  }

  /** A track came or went. */
  track(track: MediaStreamTrack, on: boolean, mid: string, label: string): void {
    if (track.kind === 'audio') {
      const sounds = this.state.sounds.filter((one) => one !== track);
      return this.change({ sounds: on ? [...sounds, track] : sounds });
    }
    const pictures = this.state.pictures.filter((one) => one.mid !== mid);
    this.change({ pictures: on ? [...pictures, { mid, label, track }] : pictures });
  }

  clear(): void {
    this.stop();
    this.state = { ...this.state, pictures: [], sounds: [], playing: 'connecting', flow: NOTHING };
    render(null, this.root);
  }

  private stop(): void {
    this.end?.();
    this.end = undefined;
  }

  private async read(meter: FlowMeter, connection: RTCPeerConnection | null): Promise<void> {
    if (!connection || !this.end) return;
    const flow = await meter.read(connection);
    if (!this.end) return;
    const isUp = ['connected', 'completed'].includes(connection.iceConnectionState);
    let playing: Playing = flow.waiting ? 'waiting' : (flow.silent ?? 0) < STOPPED ? 'playing' : 'stopped';
    if (this.paused) playing = 'paused';
    else if (!isUp && flow.waiting) playing = 'connecting';
    this.change({ flow, playing });
  }

  private change(change: Partial<State>): void {
    this.state = { ...this.state, ...change };
    render(<View state={this.state} change={(more) => this.change(more)} />, this.root);
    this.changed(this.state.playing, words(this.state));
  }
}

function words({ playing, flow }: State): string {
  switch (playing) {
    case 'connecting':
      return 'Connecting…';
    case 'waiting':
      return 'Waiting: nothing has come yet.';
    case 'paused':
      return 'Paused.';
    case 'stopped':
      return `Stopped ${duration(Math.round(flow.silent ?? 0))} ago.`;
    case 'playing':
      return 'Playing';
  }
}

function View({ state, change }: { state: State; change(more: Partial<State>): void }) {
  const { pictures, sounds, playing, flow } = state;
  const root = useRef<HTMLDivElement>(null);
  const [main, ...others] = pictures;
  const away = playing !== 'playing' && playing !== 'paused';
  return (
    <div class="player" ref={root} data-testid="playing" data-state={playing}>
      <figure class={main ? '' : 'sound-only'}>
        <Media tracks={[...(main ? [main.track] : []), ...sounds]} state={state} change={change} label={main?.label ?? 'sound'} />
        {main && others.length > 0 && <figcaption>{main.label}</figcaption>}
        {(away || !main) && (
          <p class="over" role="status" data-testid="player-state">
            {playing === 'playing' || playing === 'paused' ? 'Sound without a picture' : words(state)}
          </p>
        )}
      </figure>
      {others.map(({ mid, label, track }) => (
        <figure key={mid}>
          <Media tracks={[track]} label={label} />
          <figcaption>{label}</figcaption>
        </figure>
      ))}
      <div class="row player-bar">
        {state.blocked ? (
          <button type="button" class="primary" data-testid="unblock" onClick={() => change({ blocked: false, muted: false })}><Icon name="sound" /> Play sound</button>
        ) : (
          <button type="button" data-testid="mute" aria-pressed={state.muted} aria-label="Mute" title="Mute" onClick={() => change({ muted: !state.muted })}>
            <Icon name={state.muted ? 'sound-off' : 'sound'} />
          </button>
        )}
        <input
          type="range"
          class="grow"
          min="0"
          max="1"
          step="0.05"
          data-testid="volume"
          aria-label="Volume"
          value={state.volume}
          onInput={(event) => change({ volume: Number(event.currentTarget.value), muted: false, blocked: false })}
        />
        <span class="soft" data-testid="latency">{flow.latency === undefined || away ? '' : `${Math.round(flow.latency * 1000)} ms behind the server`}</span>
        {main && document.fullscreenEnabled && (
          <button type="button" data-testid="fullscreen" aria-label="Full screen" title="Full screen" onClick={() => void fullScreen(root.current)}><Icon name="full" /> <span class="text">Full screen</span></button>
        )}
      </div>
    </div>
  );
}

function Media({ tracks, state, change, label }: { tracks: MediaStreamTrack[]; state?: State; change?(more: Partial<State>): void; label: string }) {
  const video = useRef<HTMLVideoElement>(null);
  useEffect(() => {
    const element = video.current;
    if (!element) return;
    element.srcObject = tracks.length > 0 ? new MediaStream(tracks) : null;
    element.play().catch((error: unknown) => {
      // Without a touch of the user it plays without sound.
      if (error instanceof DOMException && error.name === 'NotAllowedError') change?.({ blocked: true });
    });
  }, [tracks.map(({ id }) => id).join()]);
  useEffect(() => {
    const element = video.current;
    if (!element) return;
    element.muted = !state || state.muted || state.blocked;
    if (state) element.volume = state.volume;
    if (tracks.length > 0) element.play().catch(() => {});
  }, [state?.muted, state?.blocked, state?.volume]);
  return <video ref={video} data-testid="video" aria-label={`Picture: ${label}`} autoplay playsInline />;
}

async function fullScreen(player: HTMLElement | null): Promise<void> {
  if (document.fullscreenElement) await document.exitFullscreen();
  else await player?.requestFullscreen();
}
