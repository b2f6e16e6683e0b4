'use strict';
// Lines over time with a cursor.

const COLORS = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#7a5230', '#5c5c5c'];

const short = value => (Number.isFinite(value) ? (Math.abs(value) >= 1e5 ? value.toExponential(2) : String(+value.toPrecision(4)))
  : '-');

// The steps of an axis: at most five round numbers within low..high.
function ticks(low, high) {
  const raw = (high - low) / 4 || 1, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].find(factor => factor * power >= raw) * power, found = [];
  for (let value = Math.ceil(low / step) * step; value <= high + 1e-9 * step; value += step) found.push(value);
  return found;
}

class Plot {
  // values: {rows, columns, at(row, column)}, reference the same or null; time: {rows, at(row, 0)}
  constructor(parent, {title, unit, names}, onSeek) {
    this.names = names;
    const box = document.createElement('div');
    box.className = 'plot';
    const head = document.createElement('div');
    head.className = 'head';
    head.textContent = `${title} [${unit}]`;
    this.canvas = document.createElement('canvas');
    this.legend = document.createElement('div');
    this.legend.className = 'legend';
    this.labels = names.map((name, k) => {
      const label = document.createElement('span'), value = document.createElement('b');
      label.style.color = COLORS[k % COLORS.length];
      label.append(name, ' ', value);
      this.legend.append(label);
      return value;
    });
    // the cursor is an element of its own, so that a plot is drawn once and not with every frame
    const drawn = document.createElement('div');
    drawn.className = 'drawn';
    this.line = document.createElement('i');
    drawn.append(this.canvas, this.line);
    box.append(head, drawn, this.legend);
    parent.append(box);
    this.canvas.addEventListener('pointerdown', event => { this.canvas.setPointerCapture(event.pointerId); this.seek(event, onSeek); });
    this.canvas.addEventListener('pointermove', event => { if (event.buttons) this.seek(event, onSeek); });
  }

  seek(event, onSeek) {
    if (!this.area || !onSeek) return;
    const [left, width, from, to] = this.area;
    onSeek(from + (event.offsetX - left) / width * (to - from));
  }

  // Draw everything but the cursor.
  draw(time, values, reference) {
    const ratio = window.devicePixelRatio || 1, width = this.canvas.clientWidth || 320, height = 110;
    this.canvas.width = width * ratio;
    this.canvas.height = height * ratio;
    this.canvas.style.height = `${height}px`;
    this.values = values;
    const c = this.canvas.getContext('2d');
    c.scale(ratio, ratio);
    let low = Infinity, high = -Infinity;
    for (const source of [values, reference]) {
      for (let k = 0; source && k < source.columns; k++) {
        for (let i = 0; i < source.rows; i++) {
          const value = source.at(i, k);
          if (value < low) low = value;
          if (value > high) high = value;
        }
      }
    }
    if (!(low <= high)) { low = -1; high = 1; }
    const margin = 0.06 * (high - low) || Math.max(1e-3, 0.05 * Math.abs(high));
    low -= margin; high += margin;
    const left = 46, top = 4, w = width - left - 6, h = height - top - 16;
    const from = time.at(0, 0), to = Math.max(time.at(time.rows - 1, 0), from + 1e-6);
    const X = t => left + (t - from) / (to - from) * w, Y = v => top + (high - v) / (high - low) * h;
    c.font = '10px sans-serif';
    c.fillStyle = '#667';
    c.strokeStyle = '#dde1e6';
    c.textAlign = 'right';
    for (const value of ticks(low, high)) {
      c.beginPath(); c.moveTo(left, Y(value)); c.lineTo(left + w, Y(value)); c.stroke();
      c.fillText(short(value), left - 4, Y(value) + 3);
    }
    c.textAlign = 'center';
    for (const value of ticks(from, to)) c.fillText(short(value), X(value), height - 3);
    const step = Math.max(1, Math.floor(time.rows / (3 * w)));
    const lines = (source, dash) => {
      c.setLineDash(dash);
      for (let k = 0; k < source.columns; k++) {
        c.strokeStyle = COLORS[k % COLORS.length];
        c.lineWidth = dash.length ? 1 : 1.5;
        c.beginPath();
        let pen = false;
        for (let i = 0; i < source.rows; i += step) {
          const value = source.at(i, k);
          if (!Number.isFinite(value)) { pen = false; continue; }
          if (pen) c.lineTo(X(time.at(i, 0)), Y(value)); else c.moveTo(X(time.at(i, 0)), Y(value));
          pen = true;
        }
        c.stroke();
      }
      c.setLineDash([]);
    };
    lines(values, []);
    if (reference) lines(reference, [4, 3]);
    this.area = [left, w, from, to];
    this.line.style.top = `${top}px`;
    this.line.style.height = `${h}px`;
    this.shown = null;
  }

  cursor(t, row) {
    if (!this.area || this.shown === row) return;
    this.shown = row;
    const [left, w, from, to] = this.area;
    this.line.style.transform = `translateX(${left + (t - from) / (to - from) * w}px)`;
    this.labels.forEach((label, k) => {
      const text = short(this.values.at(row, k));
      if (label.textContent !== text) label.textContent = text;
    });
  }
}
