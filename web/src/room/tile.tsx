// A picture of a room: who it is, whether they can be heard and seen, and on demand its figures and the choice of its layers.
import { useEffect, useRef } from 'preact/hooks';
import { Icon } from '../icon';
import { Plotted } from '../plotted';
import { bitrate, initials } from '../units';
import type { Box } from './layout';
import type { StreamFigures } from './rates';
import type { Chosen, Layering } from './wishes';

/** What is shown of somebody. */
export interface TileProps {
  /** Of the stream, which names the tile. */
  name: string;
  /** Whose it is. */
  person: string;
  id: string;
  own: boolean;
  screen: boolean;
  track: MediaStreamTrack | null;
  /** Their sound does not come, as they or a moderator want it. */
  muted: boolean;
  hand: boolean;
  /** A picture is sent, but none has come for some seconds. */
  stalled: boolean;
  talking: boolean;
  layering: Layering;
  chosen: Chosen;
  figures?: StreamFigures;
  layer: string;
}

interface Shown extends TileProps {
  box: Box | null;
  large: boolean;
  pinned: boolean;
  details: boolean;
  tick: number;
  enlarge(): void;
  choose(chosen: Chosen): void;
}

const LEVELS = ['Low', 'Medium', 'High'];

export function Tile(props: Shown) {
  const { name, box, large, pinned, details, track, stalled, muted } = props;
  const root = useRef<HTMLElement>(null);
  const video = useRef<HTMLVideoElement>(null);
  useEffect(() => {
    const element = video.current;
    if (!element) return;
    element.srcObject = track && new MediaStream([track]);
    // A refusal to start is not a fault: it starts with the user's next touch.
    if (track) element.play().catch(() => {});
  }, [track]);
  const empty = track === null || stalled;
  const classes = ['tile', large && 'large', empty && 'empty', props.talking && !muted && 'talking', props.screen && 'screen', props.own && 'own'];
  return (
    <figure
      ref={root}
      class={classes.filter(Boolean).join(' ')}
      data-testid={`tile-${name}`}
      data-key={props.id}
      hidden={box === null}
      style={box ? { left: `${box.left}px`, top: `${box.top}px`, width: `${box.width}px`, height: `${box.height}px` } : {}}
      onDblClick={props.enlarge}
    >
      <video ref={video} data-testid="video" aria-label={`Picture of ${name}`} autoplay playsInline muted />
      {empty && (
        <div class="no-picture" data-testid="no-picture">
          <span class="initials" aria-hidden="true">{initials(props.person)}</span>
          <span>{track !== null && stalled ? 'No picture comes' : props.screen ? 'No picture' : 'Camera off'}</span>
        </div>
      )}
      <figcaption data-testid="name">
        {muted && <Icon name="mic-off" label="muted" />}
        {props.hand && <Icon name="hand" label="hand raised" />}
        <span>{name}</span>
      </figcaption>
      <div class="tile-actions">
        {document.pictureInPictureEnabled && !empty && (
          <button type="button" data-testid="pip" aria-label={`${name} in a window of its own`} title="Picture in picture" onClick={() => void pictureInPicture(video.current)}>
            <Icon name="pip" />
          </button>
        )}
        {document.fullscreenEnabled && !empty && (
          <button type="button" data-testid="full" aria-label={`${name}: full screen, or back`} title="Full screen, or back" onClick={() => void fullScreen(root.current)}>
            <Icon name="full" />
          </button>
        )}
        <button type="button" data-testid="enlarge" aria-pressed={pinned} aria-label={`Show ${name} large`} title="Show large" onClick={props.enlarge}>
          <Icon name="large" />
        </button>
      </div>
      {details && track && <Details {...props} />}
    </figure>
  );
}

function Details({ name, figures, layer, layering, chosen, choose, tick }: Shown) {
  const rate = figures?.bitrate === undefined ? undefined : bitrate(figures.bitrate);
  const parts = figures ? [figures.codec, figures.size, figures.rate, rate, layer && `layer ${layer}`] : [];
  return (
    <div class="tile-details" role="group" aria-label={`Figures of ${name}`} tabIndex={0}>
      <p data-testid="figures">{parts.filter(Boolean).join(' · ')}</p>
      <div class="plots">
        <Plotted kind="bitrate" name={`${name}, bitrate`} testid="plot-bitrate" value={figures?.bitrate} tick={tick} />
        <Plotted kind="loss" name={`${name}, loss`} testid="plot-loss" value={figures?.loss} tick={tick} />
      </div>
      {layering && (
        <div class="row">
          <Level of="size" label={`Picture size of ${name}`} value={chosen.spatial} choose={(spatial) => choose({ ...chosen, spatial })} />
          <Level of="rate" label={`Frame rate of ${name}`} value={chosen.temporal} choose={(temporal) => choose({ ...chosen, temporal })} />
        </div>
      )}
    </div>
  );
}

function Level({ of, label, value, choose }: { of: 'size' | 'rate'; label: string; value?: number; choose(value?: number): void }) {
  const chosen = (text: string) => choose(text === '' ? undefined : Number(text));
  return (
    <select data-testid={`layer-${of}`} aria-label={label} value={value ?? ''} onChange={(event) => chosen(event.currentTarget.value)}>
      <option value="">Any {of}</option>
      {LEVELS.map((level, index) => <option value={index}>{level} {of}</option>)}
    </select>
  );
}

async function fullScreen(tile: HTMLElement | null): Promise<void> {
  if (document.fullscreenElement === tile) await document.exitFullscreen().catch(() => {});
  else await tile?.requestFullscreen().catch(() => {});
}

async function pictureInPicture(video: HTMLVideoElement | null): Promise<void> {
  if (document.pictureInPictureElement) await document.exitPictureInPicture();
  else await video?.requestPictureInPicture().catch(() => {});
}
