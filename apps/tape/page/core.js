'use strict';
// What all scripts of the page share: the recording, the positions that it is stepped through, and words for people.

const tape = JSON.parse(document.getElementById('tape-data').textContent);
const {ops, values} = tape;
const root = document.documentElement;
/** Positions: each operation forward, the turn at the loss, each operation backward. */
const turn = ops.length, lastPosition = 2 * ops.length;
const state = {at: 0, folded: new Set(), timer: 0};

const byId = id => document.getElementById(id);
/** An element: make('p', {class: 'a', onclick: f}, 'text', child ...). Texts never become markup. */
function make(tag, members = {}, ...children) {
  const element = document.createElement(tag);
  addMembers(element, members);
  element.append(...children.flat().filter(child => child !== null && child !== undefined && child !== ''));
  return element;
}
/** The same of a drawing. */
function draw(tag, members = {}, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  addMembers(element, members);
  element.append(...children);
  return element;
}
function addMembers(element, members) {
  for (const [name, value] of Object.entries(members)) {
    if (name.startsWith('on'))
      element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false)
      element.setAttribute(name, value === true ? '' : value);
  }
}

/** What happens at a position: {phase: 'forward', 'turn' or 'backward', op}. */
function happening(position) {
  if (position < turn) return {phase: 'forward', op: position};
  if (position === turn) return {phase: 'turn', op: -1};
  return {phase: 'backward', op: lastPosition - position};
}
const forwardPosition = op => op;
const backwardPosition = op => lastPosition - op;
const memoryAt = position => {
  const {phase, op} = happening(position);
  return phase === 'turn' ? tape.turn : ops[op][phase].memory;
};

/** Of every value: operations that read it, and shares of its gradient in the order in which they arrive. */
const users = values.map(() => []), shares = values.map(() => []);
ops.forEach((op, index) => {
  for (const input of op.inputs)
    if (input.value >= 0 && !users[input.value].includes(index)) users[input.value].push(index);
  for (const share of op.forward.shares) shares[share.value].push({...share, position: index});
});
for (let index = ops.length - 1; index >= 0; --index)
  for (const share of ops[index].backward.shares)
    shares[share.value].push({...share, position: backwardPosition(index)});

function bytesText(bytes) {
  if (bytes < 1024) return bytes + ' B';
  if (bytes < 1048576) return (bytes / 1024).toFixed(1) + ' KiB';
  if (bytes < 1073741824) return (bytes / 1048576).toFixed(1) + ' MiB';
  return (bytes / 1073741824).toFixed(2) + ' GiB';
}
function timeText(ms) {
  if (ms === null) return '-';
  return ms >= 0.1 ? (ms >= 100 ? ms.toFixed(0) : ms.toPrecision(2)) + ' ms' : (ms * 1e3).toFixed(1) + ' µs';
}
const shapeText = shape => '[' + shape.join(', ') + ']';
function numberText(number, digits = 3) {
  if (number === null) return 'none';
  if (number === 0) return '0';
  const size = Math.abs(number);
  if (size >= 1e4 || size < 1e-3) return number.toExponential(1).replace('.0e', 'e').replace('e-', 'e−').replace(/^-/, '−');
  return String(Number(number.toPrecision(size < 0.1 ? Math.min(2, digits) : digits))).replace(/^-/, '−');
}
/** What an operation takes a value for, where a product has such operands: 'query', 'keys'. */
const roleWords = {
  query: 'query',
  queries: 'query',
  content_query: 'query',
  position_query: 'query of distances',
  keys: 'keys',
  position_keys: 'keys of distances',
  past_keys: 'keys of the past',
  values: 'values',
  past_values: 'values of the past'
};
const roleIn = (op, value) => [...new Set(
    op.kept.filter(kept => kept.value === value && roleWords[kept.name]).map(kept => roleWords[kept.name]))].join(' and ');
/** The same of every operation that reads it: 'keys of 6 attention'. */
const rolesOf = value => users[value].filter(user => roleIn(ops[user], value))
                             .map(user => `${roleIn(ops[user], value)} of ${user} ${ops[user].name}`).join(', ');
const plural = (count, word) => count + ' ' + word + (count === 1 ? '' : 's');

/** A value's name; that of a parameter without what the operation's scope says already. */
function nameOf(value, scope = '') {
  const {name, kind} = values[value];
  if (kind !== 'parameter') return name;
  const parts = name.split('.'), said = scope.split(/[/.]/);
  let same = 0;
  while (same + 1 < parts.length && parts[same] === said[same]) ++same;
  return parts.slice(same).join('.');
}
