// Icons: lines of 24 × 24 in the colour of the text around them.

const PATHS = {
  mic: 'M12 3a3 3 0 0 0-3 3v5a3 3 0 0 0 6 0V6a3 3 0 0 0-3-3zM6 11a6 6 0 0 0 12 0M12 17v4M8.5 21h7',
  'mic-off': 'M9 6a3 3 0 0 1 6 0v5M9 9v2a3 3 0 0 0 4.5 2.6M6 11a6 6 0 0 0 9.5 4.9M18 11a6 6 0 0 1-.5 2.4M12 17v4M8.5 21h7M4 4l16 16',
  camera: 'M3 7h12v10H3zM15 11l6-3.5v9L15 13',
  'camera-off': 'M8 7h7v7M15 17H3V7h1M15 11l6-3.5v9L17.5 14.5M4 4l16 16',
  screen: 'M3 5h18v11H3zM9 20h6M12 16v4M12 13V8M9.5 10.5 12 8l2.5 2.5',
  hand: 'M8 13V6.5a1.5 1.5 0 0 1 3 0V11m0-6.5a1.5 1.5 0 0 1 3 0V11m0-5a1.5 1.5 0 0 1 3 0v8a7 7 0 0 1-7 7c-3 0-4.5-1.5-6-4.5L4.5 13a1.5 1.5 0 0 1 2.5-1.5L8 13',
  chat: 'M4 5h16v11H10l-5 4v-4H4z',
  people: 'M9 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM3 20a6 6 0 0 1 12 0M16 5.5a3 3 0 0 1 0 5.5M17 14.5a6 6 0 0 1 4 5.5',
  layout: 'M3 5h12v14H3zM18 5h3v4h-3zM18 11h3v3h-3zM18 16h3v3h-3z',
  settings: 'M4 7h10M18 7h2M4 17h2M10 17h10M14 7a2 2 0 1 0 4 0 2 2 0 0 0-4 0M6 17a2 2 0 1 0 4 0 2 2 0 0 0-4 0',
  details: 'M4 19V5M4 19h16M7 15l4-4 3 3 5-6',
  leave: 'M3 14c0-5 18-5 18 0v2h-5v-3c-2-.7-6-.7-8 0v3H3z',
  large: 'M4 9V4h5M20 9V4h-5M4 15v5h5M20 15v5h-5',
  pip: 'M3 5h18v14H3zM12 12h7v5h-7z',
  link: 'M10 14a4 4 0 0 0 6 0l3-3a4 4 0 0 0-6-6l-1 1M14 10a4 4 0 0 0-6 0l-3 3a4 4 0 0 0 6 6l1-1',
  play: 'M7 4l13 8-13 8z',
  pause: 'M8 5v14M16 5v14',
  sound: 'M4 9v6h4l5 4V5L8 9zM16.5 8.5a5 5 0 0 1 0 7',
  'sound-off': 'M4 9v6h4l5 4V5L8 9zM17 9l5 6M22 9l-5 6',
  stop: 'M6 6h12v12H6z',
};

export type IconName = keyof typeof PATHS;

/** An icon; one with a label says something that no text beside it does. */
export function Icon({ name, label }: { name: IconName; label?: string }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" role={label ? 'img' : undefined} aria-label={label} aria-hidden={label ? undefined : 'true'}>
      <path d={PATHS[name]} />
    </svg>
  );
}
