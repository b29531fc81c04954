// The form that publishes to a mountpoint from this browser: camera, screen or a file.
import { useEffect, useRef, useState } from 'preact/hooks';
import { open } from './capture';
import { Icon } from './icon';
import { Publication } from './whip';

const SIZE = { width: 1280, height: 720, camera: '', microphone: '' };

type Source = 'devices' | 'screen' | 'file' | 'synthetic';

interface Live {
  publication: Publication;
  stream: MediaStream;
  close(): void;
}

export function Publisher({ id, token }: { id: number | string; token: { required: boolean; known: string } }) {
  const [source, setSource] = useState<Source>('devices');
  const [file, setFile] = useState<File | null>(null);
  const [entered, setEntered] = useState(token.known);
  const [live, setLive] = useState<Live | null>(null);
  const [words, setWords] = useState('');
  const preview = useRef<HTMLVideoElement>(null);
  useEffect(() => {
    if (preview.current) preview.current.srcObject = live?.stream ?? null;
  }, [live]);
  useEffect(() => setEntered((before) => before || token.known), [token.known]);
  const stop = (why: string): void => {
    setLive((before) => {
      before?.publication.stop();
      before?.close();
      for (const track of before?.stream.getTracks() ?? []) track.stop();
      return null;
    });
    setWords(why);
  };
  const start = async (): Promise<void> => {
    setWords('Connecting…');
    let opened: { stream: MediaStream; close(): void } | null = null;
    try {
      opened = await openSource(source, file);
      const publication = await Publication.start(id, entered, opened.stream, stop);
      opened.stream.getVideoTracks()[0]?.addEventListener('ended', () => stop('What was published has ended.'));
      setLive({ publication, ...opened });
      setWords('Published from here, as long as this page is open.');
    } catch (error) {
      opened?.close();
      for (const track of opened?.stream.getTracks() ?? []) track.stop();
      setWords(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <div class="stack publisher" data-testid="publisher">
      <strong>From this browser</strong>
      <div class="fields" hidden={live !== null}>
        <div>
          <label>
            What to publish
            <select data-testid="publish-source" value={source} onChange={(event) => setSource(event.currentTarget.value as Source)}>
              <option value="devices">Camera, microphone</option>
              <option value="screen">Screen or window</option>
              <option value="file">A file of this computer</option>
              <option value="synthetic">Synthetic picture and tone</option>
            </select>
          </label>
        </div>
        {source === 'file' && (
          <div><label>File<input type="file" accept="video/*,audio/*" data-testid="publish-file" onChange={(event) => setFile(event.currentTarget.files?.[0] ?? null)} /></label></div>
        )}
        {token.required && (
          <div><label>Token<input type="password" autocomplete="off" data-testid="publish-token" value={entered} onInput={(event) => setEntered(event.currentTarget.value)} /></label></div>
        )}
      </div>
      <video ref={preview} class="preview" hidden={live === null} aria-label="What is published" autoplay playsInline muted />
      <div class="row">
        {live ? (
          <button type="button" class="end" data-testid="publish-stop" onClick={() => stop('')}><Icon name="stop" /> Stop publishing</button>
        ) : (
          <button type="button" class="primary" data-testid="publish-start" disabled={source === 'file' && !file} onClick={() => void start()}><Icon name="stream" /> Publish</button>
        )}
        <span class="soft" role="status" data-testid="publish-state">{words}</span>
      </div>
    </div>
  );
}

async function openSource(source: Source, file: File | null): Promise<{ stream: MediaStream; close(): void }> {
  if (source === 'devices' || source === 'synthetic') return open(source, SIZE);
  if (source === 'screen') return { stream: await navigator.mediaDevices.getDisplayMedia({ video: true, audio: true }), close: () => {} };
  if (!file) throw new Error('Choose a file.');
  const video = document.createElement('video');
  const url = URL.createObjectURL(file);
  video.src = url;
  video.loop = true;
  video.muted = false;
  // It is heard by those who watch, not here.
  video.volume = 0;
  await video.play();
  const element = video as HTMLVideoElement & { captureStream?(): MediaStream; mozCaptureStream?(): MediaStream };
  const stream = element.captureStream?.() ?? element.mozCaptureStream?.();
  if (!stream) throw new Error('This browser cannot publish files.');
  return { stream, close: () => (video.pause(), URL.revokeObjectURL(url)) };
}
