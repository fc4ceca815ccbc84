// The tape itself: a row for each operation in the order in which they ran, scopes as boxes around them that fold, and
// lines at the left from each value to the operations that read it.

const rowHeight = 23, headHeight = 26, laneWidth = 9, mostLanes = 14;

/** Scopes as a tree. Operations of one scope that stand apart are two boxes. */
function scopeTree() {
  const top = {name: '', path: '', depth: 0, children: [], first: 0, last: ops.length - 1, id: ''};
  const open = [top];
  ops.forEach((op, index) => {
    const parts = op.scope ? op.scope.split('/') : [];
    let same = 0;
    while (same < parts.length && same + 1 < open.length && open[same + 1].name === parts[same]) ++same;
    open.length = same + 1;
    for (let i = same; i < parts.length; ++i) {
      const box = {
        name: parts[i],
        path: parts.slice(0, i + 1).join('/'),
        depth: i + 1,
        children: [],
        first: index,
        last: index,
        id: parts.slice(0, i + 1).join('/') + '@' + index
      };
      open[open.length - 1].children.push(box);
      open.push(box);
    }
    for (const box of open) box.last = index;
    open[open.length - 1].children.push(index);
  });
  return top;
}
const scopes = scopeTree();
function allScopes(box = scopes) {
  const inner = box.children.filter(child => typeof child === 'object');
  return [...inner, ...inner.flatMap(allScopes)];
}

/** The rows that are to be seen: {scope} or {op}, with the depth that they are drawn at. */
function visibleRows() {
  const rows = [];
  const add = box => {
    for (const child of box.children) {
      if (typeof child === 'number') {
        rows.push({op: child, depth: box.depth});
        continue;
      }
      const row = {scope: child, depth: child.depth - 1, from: rows.length};
      rows.push(row);
      if (!state.folded.has(child.id)) add(child);
      row.to = rows.length - 1;
    }
  };
  add(scopes);
  return rows;
}

let rows = [], rowOf = [], edges = [];
const mostKept = Math.max(1, ...ops.map(op => op.kept_bytes));

function scopeRow(row) {
  const box = row.scope, inside = ops.slice(box.first, box.last + 1), folded = state.folded.has(box.id);
  const sum = pick => inside.reduce((total, op) => total + pick(op), 0);
  return make(
      'button', {
        class: 'row scope',
        type: 'button',
        'aria-expanded': String(!folded),
        title: box.path,
        onclick: () => fold(box, !folded)
      },
      make('span', {class: 'name'}, (folded ? '▸ ' : '▾ ') + box.name),
      make('span', {class: 'shape'}, folded ? plural(inside.length, 'operation') : ''), make('span', {class: 'parts'}),
      make('span', {class: 'kept'}, folded ? bytesText(sum(op => op.kept_bytes)) : ''),
      make('span', {class: 'ms'}, folded ? timeText(sum(op => op.forward.ms + op.backward.ms)) : ''));
}
function opRow(row) {
  const op = ops[row.op];
  const parts = op.inputs.filter(input => input.value >= 0 && ['parameter', 'leaf'].includes(values[input.value].kind))
                    .map(input => nameOf(input.value, op.scope));
  const shade = `linear-gradient(270deg, color-mix(in srgb, var(--value) 26%, transparent) ${
      (100 * op.kept_bytes / mostKept).toFixed(1)}%, transparent 0)`;
  const kept = make('span', {class: 'kept', title: 'keeps for backward'}, bytesText(op.kept_bytes));
  kept.style.background = shade;
  return make(
      'button', {class: 'row', type: 'button', tabindex: '-1', 'data-op': row.op, onclick: () => goToOp(row.op)},
      make('span', {class: 'name'}, make('i', {}, String(row.op)), op.name),
      make('span', {class: 'shape'}, op.outputs.map(output => shapeText(values[output].shape)).join(' ')),
      make('span', {class: 'parts', title: parts.join(', ')}, parts.join(', ')), kept,
      make('span', {class: 'ms', title: 'forward and backward'},
           timeText(op.forward.ms + op.backward.ms)));
}

/** Lines of values, each in a lane of its own while it goes down; the shortest nearest to the rows. */
function planEdges() {
  const wanted = [];
  values.forEach((value, index) => {
    if (value.maker < 0) return;
    const from = rowOf[value.maker];
    for (const user of users[index])
      if (rowOf[user] > from) wanted.push({value: index, user, from, to: rowOf[user], lane: 0});
  });
  wanted.sort((a, b) => (a.to - a.from) - (b.to - b.from) || a.from - b.from);
  const taken = [];  // of a lane: [from, to, value]
  for (const edge of wanted) {
    if (edge.to === edge.from + 1) continue;
    for (edge.lane = 1; edge.lane < mostLanes; ++edge.lane) {
      const there = taken[edge.lane] || (taken[edge.lane] = []);
      if (there.every(other => other.value === edge.value || other.to <= edge.from || other.from >= edge.to)) break;
    }
    (taken[edge.lane] || (taken[edge.lane] = [])).push(edge);
  }
  return wanted;
}

function drawRows() {
  rows = visibleRows();
  rowOf = new Array(ops.length);
  rows.forEach((row, index) => {
    if (row.op !== undefined) rowOf[row.op] = index;
    else if (state.folded.has(row.scope.id))
      for (let op = row.scope.first; op <= row.scope.last; ++op) rowOf[op] = index;
  });
  edges = planEdges();
  const lanes = Math.max(1, ...edges.map(edge => edge.lane)), gutter = 16 + lanes * laneWidth, trunk = gutter - 8;
  const middle = row => row * rowHeight + rowHeight / 2;
  const place = byId('rows');
  place.style.height = rows.length * rowHeight + 4 + 'px';
  const drawing = draw('svg', {width: gutter, height: rows.length * rowHeight, 'aria-hidden': 'true'});
  for (const edge of edges) {
    const x = trunk - edge.lane * laneWidth, y = middle(edge.from), end = middle(edge.to), bend = rowHeight * 0.45;
    edge.path = draw('path', {
      d: edge.lane === 0 ? `M${trunk} ${y}V${end}` :
                           `M${trunk} ${y}Q${x} ${y} ${x} ${y + bend}V${end - bend}Q${x} ${end} ${trunk} ${end}`
    });
    drawing.append(edge.path);
  }
  const boxes = [], buttons = [];
  rows.forEach((row, index) => {
    const left = gutter + row.depth * 10;
    if (row.scope) {
      const box = make('div', {class: 'box' + (row.scope.depth % 2 ? '' : ' odd')});
      box.style.cssText = `left:${left}px;top:${index * rowHeight + 1}px;height:${
          (row.to - index + 1) * rowHeight - 2}px;right:${8 + row.depth * 4}px`;
      boxes.push(box);
    }
    row.button = row.scope ? scopeRow(row) : opRow(row);
    row.button.style.cssText = `left:${left + 2}px;top:${index * rowHeight + 1}px;height:${rowHeight - 2}px;right:${
        10 + row.depth * 4}px`;
    buttons.push(row.button);
    row.dot = draw('circle', {cx: trunk, cy: middle(index), r: row.scope ? 0 : 4});
    if (row.scope && state.folded.has(row.scope.id)) row.dot.setAttribute('r', 5);
    drawing.append(row.dot);
  });
  place.replaceChildren(...boxes, drawing, ...buttons);
}

function fold(box, folded) {
  if (folded) state.folded.add(box.id);
  else state.folded.delete(box.id);
  redrawRows();
  const again = rows.find(row => row.scope === box);
  if (again) again.button.focus();
}
function foldAll(folded) {
  state.folded = new Set(folded ? allScopes().filter(box => box.depth === 1).map(box => box.id) : []);
  redrawRows();
}
function redrawRows() {
  drawRows();
  markRows();
}

/** What is the case with an operation at the present position: future, live or gone; arrived: so has its gradient. */
function stateOf(op) {
  if (forwardPosition(op) > state.at) return 'future';
  if (backwardPosition(op) < state.at) return 'gone';
  const arrived = ops[op].outputs.some(
      output => tape.losses.includes(output) ? state.at >= turn :
                                               shares[output].some(share => share.position <= state.at));
  return state.at >= turn && arrived ? 'arrived' : 'live';
}

function markRows() {
  const {phase, op} = happening(state.at);
  root.className = phase;
  const marks = ops.map((unused, index) => stateOf(index));
  const current = op >= 0 ? rowOf[op] : -1;
  rows.forEach((row, index) => {
    const inside = row.scope ? marks.slice(row.scope.first, row.scope.last + 1) : [marks[row.op]];
    const mark = inside.includes('arrived') ? 'arrived' : inside.includes('live') ? 'live' : inside[0];
    row.button.className = 'row' + (row.scope ? ' scope ' : ' ') + mark + (index === current ? ' now' : '');
    row.dot.setAttribute('class', 'dot ' + mark + (index === current ? ' now' : ''));
    if (index === current) row.button.setAttribute('aria-current', 'step');
    else row.button.removeAttribute('aria-current');
  });
  const touched = phase === 'backward' ? new Set(ops[op].backward.shares.map(share => share.value)) : null;
  for (const edge of edges) {
    const maker = values[edge.value].maker;
    // A gradient goes along the line of the operation that gave it.
    const given = shares[edge.value].some(
        share => share.position === backwardPosition(edge.user) && share.position <= state.at);
    const hot = phase === 'forward' ? edge.user === op : phase === 'backward' && edge.user === op &&
                                                             touched.has(edge.value);
    const mark = marks[maker] === 'future' || forwardPosition(edge.user) > state.at ? '' :
        marks[maker] === 'gone'                                                     ? '' :
        given                                                                       ? 'arrived' :
                                                                                      'live';
    edge.path.setAttribute('class', 'edge ' + mark + (hot ? ' hot' : ''));
  }
  if (current >= 0) showRow(current);
}
/** Scrolls the list, and it alone, so far that the row is to be seen. */
function showRow(index) {
  const list = byId('tape'), top = byId('rows').offsetTop + index * rowHeight - list.offsetTop;
  if (list.scrollHeight <= list.clientHeight + 1) return;
  const above = top - 3 * rowHeight - headHeight, below = top + 4 * rowHeight;
  if (list.scrollTop > above) list.scrollTop = above;
  else if (list.scrollTop + list.clientHeight < below) list.scrollTop = below - list.clientHeight;
}
