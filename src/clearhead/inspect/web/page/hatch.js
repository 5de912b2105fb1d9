// Hatching: what is masked.

// Fill a rectangle of a canvas with lines across it.
export function hatch(pen, { x, y, width, height }, { ground, line }) {
  pen.save();
  pen.beginPath();
  pen.rect(x, y, width, height);
  pen.fillStyle = ground;
  pen.fill();
  pen.clip();
  pen.strokeStyle = line;
  pen.lineWidth = 1;
  pen.beginPath();
  for (let start = x - height; start < x + width; start += 6) {
    pen.moveTo(start, y + height);
    pen.lineTo(start + height, y);
  }
  pen.stroke();
  pen.restore();
}
