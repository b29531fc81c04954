// How figures are written.

/** bit/s. */
export function bitrate(bits: number): string {
  if (bits >= 1e9) return `${(bits / 1e9).toFixed(2)} Gbit/s`;
  return bits >= 1e6 ? `${(bits / 1e6).toFixed(2)} Mbit/s` : `${Math.round(bits / 1e3)} kbit/s`;
}

/** A share, 0 to 1. */
export function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}

/** A short time, in seconds. */
export function time(seconds: number): string {
  if (seconds >= 1) return `${seconds.toFixed(1)} s`;
  return `${(seconds * 1000).toFixed(seconds < 0.001 ? 2 : 1)} ms`;
}

/** A long time, in seconds: its two largest units. */
export function duration(seconds: number): string {
  const whole = Math.floor(seconds);
  const parts: [number, string][] = [
    [Math.floor(whole / 86_400), 'd'],
    [Math.floor(whole / 3600) % 24, 'h'],
    [Math.floor(whole / 60) % 60, 'min'],
    [whole % 60, 's'],
  ];
  const first = parts.findIndex(([count]) => count > 0);
  if (first < 0) return '0 s';
  return parts.slice(first, first + 2).map(([count, unit]) => `${count} ${unit}`).join(' ');
}

export function bytes(count: number): string {
  if (count >= 1e9) return `${(count / 1e9).toFixed(2)} GB`;
  if (count >= 1e6) return `${(count / 1e6).toFixed(1)} MB`;
  return count >= 1e3 ? `${(count / 1e3).toFixed(1)} kB` : `${count} B`;
}

/** A whole number, with a thin gap after each thousand. */
export function count(number: number): string {
  return String(Math.round(number)).replace(/\B(?=(\d{3})+$)/g, '\u202f');
}

/** The first letters of a name, as they stand for a face. */
export function initials(name: string): string {
  const words = name.replace(/:.*/, '').split(/\s+/).filter(Boolean);
  return words.map((word) => [...word][0] ?? '').slice(0, 2).join('').toUpperCase();
}
