'use strict';
// The part "Attention": all heads small, one of them closely, and the text that they read.

function drawAttention() {
  const place = byId('attention-maps');
  const some = perRun(place, 'attention', run => page.studies[run].attention || page.studies[run].no_attention, showAttention);
  place.closest('section').classList.toggle('hidden', !some);
}

/** The weights of a head, unpacked once: weight(row, column), columns as they are stored. */
function weightsOf(maps, head) {
  if (!head.unpacked) head.unpacked = bytes(head.cells);
  const columns = maps.distance_columns + maps.slot_columns;
  return (row, column) => (head.unpacked[row * columns + column] / 255) ** 2 * head.most;
}
/** The oldest position first, then slots: which stored column is drawn there. */
function storedColumn(maps, column) {
  return column < maps.distance_columns ? maps.distance_columns - 1 - column : column;
}
/** A text without marks for spaces. */
const plain = text => text.replaceAll('␣', ' ');
const headName = head => `layer ${head.layer}, ${head.context ? 'head' : 'head of slots'} ${head.head}`;
/** What a head does, in a few words. */
function headWords(maps, head) {
  const back = maps.distance_columns && head.context ? `looks ${number(head.distance, 3)} back` : '';
  const slots = maps.slot_columns && head.slot_share > 0.0005 ? `${number(100 * head.slot_share, 2)}% on slots` : '';
  return [back, slots].filter(Boolean).join(', ');
}
function drawHead(canvas, maps, head) {
  const columns = maps.distance_columns + maps.slot_columns;
  weightsOf(maps, head);
  drawMap(canvas, maps.rows, columns, (row, column) => head.unpacked[row * columns + storedColumn(maps, column)]);
}

function showAttention(run) {
  const maps = page.studies[run].attention;
  if (!maps) return make('p', {class: 'note'}, `Not shown: ${page.studies[run].no_attention}.`);
  const heads = make('div', {class: 'heads'}), closely = make('div');
  const choose = (head, button) => {
    for (const other of heads.children) other.setAttribute('aria-pressed', String(other === button));
    closely.replaceChildren(showHead(run, maps, head));
    sweepCharts();
  };
  const buttons = maps.heads.map(head => {
    const canvas = make('canvas', {'aria-hidden': 'true'});
    const button = make('button', {class: 'head', type: 'button', 'aria-pressed': 'false', 'data-head': `${head.layer}.${head.head}`}, canvas,
                        make('b', {}, `${head.layer} · ${head.head}${head.context ? '' : ' slots'}`), make('small', {}, headWords(maps, head)));
    button.setAttribute('aria-label', `${headName(head)}: ${headWords(maps, head)}`);
    button.addEventListener('click', () => choose(head, button));
    whenNear(canvas, () => drawHead(canvas, maps, head));
    heads.append(button);
    return button;
  });
  if (buttons.length) {
    // The one that spreads its weight least over what lies before: something is to be seen there.
    const first = maps.heads.reduce((best, head, i) => head.context && head.most * (1 - head.slot_share) > maps.heads[best].most * (1 - maps.heads[best].slot_share) ? i : best, 0);
    choose(maps.heads[first], buttons[first]);
  }
  return make('div', {}, make('p', {}, `${maps.heads.length} ${maps.heads.length === 1 ? 'head reads' : 'heads (layer · head) read'} ${maps.text}; shown are the last ${maps.rows} of `
    + `${maps.tokens.length} tokens.`), maps.heads.length > 1 ? heads : '', closely);
}

function showHead(run, maps, head) {
  const columns = maps.distance_columns + maps.slot_columns, weight = weightsOf(maps, head), first = maps.tokens.length - maps.rows;
  const canvas = make('canvas', {tabindex: '0', role: 'img', 'aria-label': `Weights of ${headName(head)}`}), pick = make('div', {class: 'pick'});
  const said = make('p', {class: 'said note'}, 'Point at the map or at a token.'), text = make('div', {class: 'reading'});
  drawHead(canvas, maps, head);
  const tokens = maps.tokens.map((token, position) => {
    const own = position >= first;
    const element = make(own ? 'button' : 'span', {class: 'token' + (own ? ' shown' : ''), type: own ? 'button' : null, tabindex: own ? '-1' : null}, plain(token));
    if (own) {
      element.addEventListener('pointerenter', () => ask(position - first));
      element.addEventListener('click', () => ask(position - first));
    }
    text.append(element, maps.words ? ' ' : '');
    return element;
  });
  /** Shows where the query of a row looks. */
  const ask = (row, column = null) => {
    const shade = tokens.map(() => 0);
    for (let at = 0; at < maps.distance_columns; ++at)
      for (let k = 0; k < maps.distance_bin; ++k) {
        const position = first + row - maps.nearest - at * maps.distance_bin - k;
        if (position >= 0) shade[position] += weight(row, at) / maps.distance_bin;
      }
    const most = Math.max(0.02, ...shade);
    tokens.forEach((element, position) => {
      const share = Math.sqrt(shade[position] / most);
      element.style.background = share > 0.05 ? `color-mix(in srgb, var(--c4) ${Math.round(85 * share)}%, transparent)` : '';
      element.classList.toggle('asks', position === first + row);
    });
    const height = canvas.clientHeight / maps.rows;
    Object.assign(pick.style, {top: canvas.offsetTop + row * height + 'px', height: Math.max(2, height) + 'px', display: 'block'});
    said.replaceChildren(make('b', {}, maps.tokens[first + row]), ` (token ${first + row}) `, column === null ? bestOf(row) : columnWords(row, column));
    shown = {row, column};
  };
  const columnWords = (row, column) => {
    const stored = storedColumn(maps, column), value = `gives ${number(100 * weight(row, stored), 3)}%`;
    if (column >= maps.distance_columns) {
      const slot = (stored - maps.distance_columns) * maps.slot_bin;
      return `${value} to ${maps.slot_bin > 1 ? `the best of slots ${slot} to ${slot + maps.slot_bin - 1}` : 'slot ' + slot}`;
    }
    const near = maps.nearest + stored * maps.distance_bin, far = near + maps.distance_bin - 1, token = maps.tokens[first + row - near];
    return `${value} to ${near === far ? near : near + ' to ' + far} back` + (token === undefined ? ', before the text' : `: ${token}`);
  };
  const bestOf = row => {
    let best = 0;
    for (let column = 1; column < columns; ++column) if (weight(row, storedColumn(maps, column)) > weight(row, storedColumn(maps, best))) best = column;
    return columns ? 'looks most here: it ' + columnWords(row, best) : '';
  };
  let shown = {row: maps.rows - 1, column: null};
  canvas.addEventListener('pointermove', event => {
    const area = canvas.getBoundingClientRect();
    ask(Math.min(maps.rows - 1, Math.max(0, Math.floor((event.clientY - area.top) / area.height * maps.rows))),
        Math.min(columns - 1, Math.max(0, Math.floor((event.clientX - area.left) / area.width * columns))));
  });
  canvas.addEventListener('keydown', event => {
    const moves = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]}[event.key];
    if (!moves) return;
    event.preventDefault();
    const column = shown.column === null ? columns - 1 : shown.column;
    ask(Math.min(maps.rows - 1, Math.max(0, shown.row + moves[0])), Math.min(columns - 1, Math.max(0, column + moves[1])));
  });
  const share = columns ? `${100 * maps.distance_columns / columns}%` : '0';
  const farthest = maps.nearest + maps.distance_columns * maps.distance_bin - 1;
  const left = make('div', {class: 'chart'}, make('h3', {}, `${headName(head)[0].toUpperCase()}${headName(head).slice(1)}`, make('small', {}, headWords(maps, head))),
    make('div', {class: 'map'}, canvas, pick, maps.distance_columns && maps.slot_columns ? make('div', {class: 'divider', style: `left:${share}`}) : '',
         make('div', {class: 'axis'}, maps.distance_columns ? make('span', {style: `flex-basis:${share}`}, make('span', {}, `← ${farthest} back`), make('span', {}, `${maps.nearest} back`)) : '',
              maps.slot_columns ? make('span', {style: 'flex-basis:auto; flex-grow:1; padding-left:.6rem'}, 'persistent slots') : ''),
         make('div', {class: 'axis'}, make('span', {}, make('span', {}, 'Rows: the tokens that look, from the top on.')),
              make('span', {style: 'flex:none'}, '0 ', make('span', {class: 'ramp'}), ` ${number(100 * head.most, 2)}%`)), said));
  const right = make('div', {class: 'chart'}, make('h3', {}, 'The text, as the outlined token sees it'), text);
  const whole_ = make('div', {}, make('div', {class: 'closely'}, left, right));
  if (head.slots.length) whole_.append(slotWords(maps, head));
  if (hasCharts && head.context && maps.distance_columns > 1) whole_.append(distanceChart(run, maps, head));
  requestAnimationFrame(() => {
    ask(maps.rows - 1);
    // The end of the text is what is shown.
    text.scrollTop = text.scrollHeight;
  });
  return whole_;
}

/** The slots that a head uses most, with the tokens that make it look there. */
function slotWords(maps, head) {
  const list = make('ul', {class: 'slots'});
  for (const slot of head.slots) {
    const examples = slot.at.flatMap((position, i) => {
      const before = maps.tokens.slice(Math.max(0, position - (maps.words ? 4 : 8)), position).join(maps.words ? ' ' : '');
      return [i ? ' · ' : '', '…' + plain(before) + (maps.words ? ' ' : ''), make('b', {}, plain(maps.tokens[position]))];
    });
    list.append(make('li', {}, `slot ${slot.slot} has ${number(100 * slot.share, 2)}% of the weight, most from `, ...examples));
  }
  return make('div', {}, make('h3', {style: 'margin-top:1rem'}, 'Its slots'), list);
}

/** How the weight falls with the distance: all heads faint, this one strong. */
function distanceChart(run, maps, head) {
  const place = make('div', {style: 'margin-top:.8rem'});
  const line = one => {
    if (!one.distances) one.distances = floats(one.by_distance);
    return Array.from(one.distances, (y, i) => ({x: maps.nearest + i, y: 100 * y})).filter(point => point.y > 0 && point.x > 0);
  };
  new LineChart(place, 'Weight by distance', () => [
    ...maps.heads.filter(one => one !== head && one.context).map(one => ({name: headName(one), points: line(one), colour: style('--c6'), faint: true, width: 1})),
    {name: headName(head), points: line(head), colour: colour(run), width: 2},
  ], {axis: {name: 'positions back', type: 'logarithmic'}, unit: '%, mean over the text; grey: the other heads', logY: () => true});
  return place;
}
