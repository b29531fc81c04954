// Runs in the browser.

/** A moving picture without a camera. */
export function picture(width = 320, height = 180): MediaStreamTrack {
  const canvas = Object.assign(document.createElement('canvas'), { width, height });
  const context = canvas.getContext('2d') as CanvasRenderingContext2D;
  let step = 0;
  setInterval(() => {
    context.fillStyle = `hsl(${(step += 7) % 360} 60% 40%)`;
    context.fillRect(0, 0, width, height);
    context.fillStyle = '#fff';
    context.fillRect(step % width, step % height, 40, 40);
  }, 40);
  return canvas.captureStream(25).getTracks()[0];
}
