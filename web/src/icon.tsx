// Icons: lines of 24 × 24 in the colour of the text around them. `build.mjs` puts them into pages, where `<icon name="mic">` stands.
import paths from './icons.json';

export type IconName = keyof typeof paths;

/** An icon; one with a label says something that no text beside it does. */
export function Icon({ name, label }: { name: IconName; label?: string }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" role={label ? 'img' : undefined} aria-label={label} aria-hidden={label ? undefined : 'true'}>
      <path d={paths[name]} />
    </svg>
  );
}
