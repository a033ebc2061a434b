// chart.js -- one line over an axis, as SVG.
'use strict';

const kSvg = 'http://www.w3.org/2000/svg';

function svgPart(name, attributes, text) {
  const part = document.createElementNS(kSvg, name);
  for (const [key, value] of Object.entries(attributes)) part.setAttribute(key, value);
  if (text !== undefined) part.textContent = text;
  return part;
}

// Two to five round numbers between `low` and `high`.
function ticks(low, high) {
  const rough = (high - low) / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step / 1e6 && found.length < 6; at += step) found.push(at);
  return found;
}

// Draws `values` in place of what `target` holds, as wide as it is. `label` is what a screen reader says; `ends` stand
// below.
function drawLine(target, values, label, ends, fromZero, height) {
  const width = Math.max(target.clientWidth, 280);
  const left = 60;
  const bottom = height - 28;
  let low = fromZero ? 0 : Math.min(...values);
  let high = Math.max(...values);
  if (!(high > low)) {
    high = low + (Math.abs(low) || 1);
    if (!fromZero) low -= Math.abs(low) || 1;
  }
  const x = (index) => left + (width - left - 10) * (values.length > 1 ? index / (values.length - 1) : 0.5);
  const y = (value) => bottom - (bottom - 12) * ((value - low) / (high - low));
  const picture = svgPart('svg', {viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': label});
  for (const tick of ticks(low, high)) {
    picture.append(svgPart('line', {class: 'axis', x1: left, x2: width - 10, y1: y(tick), y2: y(tick)}));
    const text = Math.abs(tick) >= 10000 ? compact(tick) : String(Number(tick.toPrecision(6)));
    picture.append(svgPart('text', {x: left - 8, y: y(tick) + 4, 'text-anchor': 'end'}, text));
  }
  const path = values.map((value, index) => `${index === 0 ? 'M' : 'L'}${x(index).toFixed(1)} ${y(value).toFixed(1)}`);
  picture.append(svgPart('path', {class: 'line', d: path.join('')}));
  picture.append(svgPart('text', {x: left, y: height - 8}, ends[0]));
  picture.append(svgPart('text', {x: width - 10, y: height - 8, 'text-anchor': 'end'}, ends[1]));
  target.replaceChildren(picture);
}

// 12,345,678 as 12.3 M.
function compact(number) {
  for (const [size, letter] of [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']]) {
    if (Math.abs(number) >= size) return `${(number / size).toPrecision(3)} ${letter}`;
  }
  return String(Number(number.toPrecision(3)));
}
