// Where the sent picture and sound come from: camera and microphone, a drawn picture and a tone, or nothing.

export type SourceKind = 'devices' | 'synthetic' | 'none';

/** Why camera and microphone cannot be had. */
export type Obstacle = 'insecure' | 'unsupported' | 'denied' | 'missing' | 'busy' | 'other';

export class CaptureError extends Error {
  constructor(readonly obstacle: Obstacle, message: string) {
    super(message);
  }
}

export interface CaptureOptions {
  width: number;
  height: number;
  /** Device ids; empty for the browser's choice. */
  camera: string;
  microphone: string;
  /** Sound as it is, in stereo: neither echo nor noise is taken out of it, as of speech. */
  music?: boolean;
}

export interface Capture {
  stream: MediaStream;
  /** A hint for the user, for example that only a microphone was found. */
  remark: string;
  /** Frees what the browser does not free by itself when the tracks stop. */
  close(): void;
}

export async function open(kind: SourceKind, options: CaptureOptions): Promise<Capture> {
  if (kind === 'none') return { stream: new MediaStream(), remark: '', close: () => {} };
  return kind === 'synthetic' ? synthetic(options) : devices(options);
}

export interface DeviceLists {
  cameras: MediaDeviceInfo[];
  microphones: MediaDeviceInfo[];
}

/** The devices that the browser lets us see; labels are empty until the user has once given permission. */
export async function listDevices(): Promise<DeviceLists> {
  const all = (await navigator.mediaDevices?.enumerateDevices()) ?? [];
  return {
    cameras: all.filter((device) => device.kind === 'videoinput'),
    microphones: all.filter((device) => device.kind === 'audioinput'),
  };
}

async function devices(options: CaptureOptions): Promise<Capture> {
  requireDevices();
  const { cameras, microphones } = await listDevices();
  if (cameras.length === 0 && microphones.length === 0) {
    throw new CaptureError('missing', 'No camera and no microphone was found on this device.');
  }
  try {
    const stream = await navigator.mediaDevices.getUserMedia({
      audio: microphones.length > 0 && exactDevice(options.microphone),
      video: cameras.length > 0 && {
        ...exactDevice(options.camera),
        width: { ideal: options.width },
        height: { ideal: options.height },
      },
    });
    return { stream, remark: remarkOn(stream), close: () => {} };
  } catch (error) {
    throw obstacleOf(error);
  }
}

/** One track of the chosen microphone or camera, to take the place of another. */
export async function openDevice(kind: 'audio' | 'video', options: CaptureOptions): Promise<MediaStreamTrack> {
  requireDevices();
  try {
    const stream = await navigator.mediaDevices.getUserMedia(
      kind === 'audio'
        ? { audio: { ...exactDevice(options.microphone), ...(options.music && MUSIC) } }
        : { video: { ...exactDevice(options.camera), width: { ideal: options.width }, height: { ideal: options.height } } },
    );
    const [track] = stream.getTracks();
    if (!track) throw new CaptureError('missing', 'The chosen device gives nothing.');
    return track;
  } catch (error) {
    throw obstacleOf(error);
  }
}

/** The picture of a screen or window that the user chooses; null if they choose none. */
export async function openScreen(): Promise<MediaStreamTrack | null> {
  try {
    const stream = await navigator.mediaDevices.getDisplayMedia({ video: true });
    const [track] = stream.getVideoTracks();
    // Text has to stay legible, even if movement suffers.
    if (track) track.contentHint = 'detail';
    return track ?? null;
  } catch (error) {
    if (error instanceof DOMException && error.name === 'NotAllowedError') return null;
    throw obstacleOf(error);
  }
}

/** Browsers give devices to some pages only. */
function requireDevices(): void {
  if (!window.isSecureContext) {
    throw new CaptureError(
      'insecure',
      'Browsers give camera and microphone only to pages from https:// or from localhost. Open this page that way, or go on without them.',
    );
  }
  if (!navigator.mediaDevices?.getUserMedia) {
    throw new CaptureError('unsupported', 'This browser gives pages no access to camera or microphone.');
  }
}

const MUSIC: MediaTrackConstraints = { channelCount: { ideal: 2 }, echoCancellation: false, noiseSuppression: false, autoGainControl: false };

function exactDevice(id: string): MediaTrackConstraints {
  return id ? { deviceId: { exact: id } } : {};
}

function remarkOn(stream: MediaStream): string {
  if (stream.getVideoTracks().length === 0) return 'No camera was found: sending sound only.';
  if (stream.getAudioTracks().length === 0) return 'No microphone was found: sending the picture only.';
  return '';
}

function obstacleOf(error: unknown): CaptureError {
  if (error instanceof CaptureError) return error;
  const name = error instanceof DOMException ? error.name : '';
  switch (name) {
    case 'NotAllowedError':
    case 'SecurityError':
      return new CaptureError(
        'denied',
        'Permission to use camera and microphone was denied. Allow it in the browser’s address bar and try again, or go on without them.',
      );
    case 'NotFoundError':
    case 'OverconstrainedError':
      return new CaptureError('missing', 'The chosen camera or microphone was not found. Choose another one.');
    case 'NotReadableError':
    case 'AbortError':
      return new CaptureError('busy', 'Camera or microphone cannot be opened: another program may be using it.');
    default:
      return new CaptureError('other', `Camera and microphone cannot be opened: ${String(error)}`);
  }
}

/** A moving drawing and a soft tone, for machines without camera and microphone. */
function synthetic({ width, height }: CaptureOptions): Capture {
  const canvas = document.createElement('canvas');
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext('2d');
  if (!context) throw new CaptureError('unsupported', 'This browser cannot draw a synthetic picture.');
  const started = performance.now();
  // A timer, as animation frames stop in a background tab.
  const timer = setInterval(() => draw(context, (performance.now() - started) / 1000), 1000 / 25);
  draw(context, 0);

  const audio = new AudioContext();
  const tone = audio.createOscillator();
  const volume = audio.createGain();
  const destination = audio.createMediaStreamDestination();
  tone.frequency.value = 330;
  volume.gain.value = 0.05;
  tone.connect(volume).connect(destination);
  tone.start();

  const stream = new MediaStream([...canvas.captureStream(25).getTracks(), ...destination.stream.getTracks()]);
  return {
    stream,
    remark: 'Sending a synthetic picture and tone.',
    close: () => {
      clearInterval(timer);
      void audio.close();
    },
  };
}

function draw(context: CanvasRenderingContext2D, seconds: number): void {
  const { width, height } = context.canvas;
  const gradient = context.createLinearGradient(0, 0, width, height);
  gradient.addColorStop(0, `hsl(${(seconds * 20) % 360} 55% 32%)`);
  gradient.addColorStop(1, `hsl(${(seconds * 20 + 90) % 360} 55% 18%)`);
  context.fillStyle = gradient;
  context.fillRect(0, 0, width, height);

  const radius = height / 8;
  context.fillStyle = 'rgb(255 255 255 / 0.85)';
  context.beginPath();
  context.arc(
    width / 2 + (width / 2 - radius) * Math.sin(seconds * 1.3),
    height / 2 + (height / 2 - radius) * Math.sin(seconds * 1.7),
    radius,
    0,
    2 * Math.PI,
  );
  context.fill();

  context.fillStyle = '#fff';
  context.font = `600 ${Math.round(height / 10)}px system-ui, sans-serif`;
  context.fillText(new Date().toLocaleTimeString(), width / 20, height - height / 14);
}
