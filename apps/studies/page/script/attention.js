'use strict';
// The part "Attention": all heads small, one of them closely, and the text that they read.

function drawAttention() {
  const place = byId('attention-maps');
  const some =
      perRun(place, 'attention', run => page.studies[run].attention || page.studies[run].no_attention, showAttention);
  drawOffsets(place);
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
const headName = (head, maps) => maps && maps.heads.length === 1 ?
    'the window' :
    `layer ${head.layer}, ${head.context ? 'head' : 'head of slots'} ${head.head}`;
/** Where a head looks most, if there is such a place, as the mean is elsewhere; else how widely it looks. */
function peakWords(maps, head) {
  const weights = distancesOf(head), most = Math.max(0, ...weights);
  if (most >= 0.05) return `, most ${maps.nearest + weights.indexOf(most)} back (${number(100 * most, 2)}%)`;
  return head.slot_share > 0.0005 ? '' : `, spread over ${number(2 ** head.entropy, 2)}`;
}
/** The mean weight by distance, unpacked once. */
function distancesOf(head) {
  if (!head.distances) head.distances = floats(head.by_distance);
  return head.distances;
}
/** What a head does, in a few words. */
function headWords(maps, head) {
  const back = maps.distance_columns && head.context ? `looks ${number(head.distance, 3)} back${peakWords(maps, head)}` : '';
  const slots = maps.slot_columns && head.slot_share > 0.0005 ? `${number(100 * head.slot_share, 2)}% on slots` : '';
  return [back, slots].filter(Boolean).join(', ');
}
/** Where models without memory cannot look. */
const windowWords = maps => maps.window && maps.window < maps.tokens.length ?
    `The model reads windows of ${maps.window} tokens, each from nothing: no head looks across a window's start. ` :
    '';
/** `most`: the weight that has the darkest colour. */
function drawHead(canvas, maps, head, most = head.most) {
  const columns = maps.distance_columns + maps.slot_columns;
  weightsOf(maps, head);
  const share = most > 0 ? Math.sqrt(head.most / most) : 1;
  drawMap(
      canvas, maps.rows, columns, (row, column) => share * head.unpacked[row * columns + storedColumn(maps, column)]);
}

function showAttention(run) {
  const maps = page.studies[run].attention;
  if (!maps) return make('p', {class: 'note'}, `Not shown: ${page.studies[run].no_attention}.`);
  const heads = make('div', {class: 'heads'}), closely = make('div');
  const mostOf = head => view.oneScale ? Math.max(...maps.heads.map(one => one.most)) : head.most;
  const choose = (head, button) => {
    for (const other of heads.children) other.setAttribute('aria-pressed', String(other === button));
    closely.replaceChildren(new HeadView(run, maps, head).element());
  };
  const buttons = maps.heads.map(head => {
    const canvas = make('canvas', {'aria-hidden': 'true'});
    const button = make(
        'button', {class: 'head', type: 'button', 'aria-pressed': 'false', 'data-head': `${head.layer}.${head.head}`},
        canvas, make('b', {}, `${head.layer} · ${head.head}${head.context ? '' : ' slots'}`),
        make('small', {}, headWords(maps, head)));
    button.setAttribute('aria-label', `${headName(head)}: ${headWords(maps, head)}`);
    button.addEventListener('click', () => {
      view.heads.set(run, head);
      choose(head, button);
      sweepCharts();
    });
    whenNear(canvas, () => drawHead(canvas, maps, head, mostOf(head)));
    heads.append(button);
    return button;
  });
  const scale = toggle('one scale of colours', view.oneScale, on => {
    view.oneScale = on;
    buttons.forEach((button, i) => drawHead(button.querySelector('canvas'), maps, maps.heads[i], mostOf(maps.heads[i])));
  });
  let why = '';
  if (buttons.length) {
    // The greatest product of largest weight and share on the text: something is to be seen there.
    const first = maps.heads.reduce(
        (best, head, i) => head.context &&
                head.most * (1 - head.slot_share) > maps.heads[best].most * (1 - maps.heads[best].slot_share) ?
            i :
            best,
        0);
    const shown = Math.max(0, maps.heads.indexOf(view.heads.get(run) ?? maps.heads[first]));
    choose(maps.heads[shown], buttons[shown]);
    if (buttons.length > 1)
      why = `Shown closely at first is ${headName(maps.heads[first])}, ` +
          'chosen for its largest weight times its share on the text.';
  }
  return make(
      'div', {},
      make(
          'p', {},
          `${maps.heads.length} ${maps.heads.length === 1 ? 'map: the model reads' : 'heads (layer · head) read'} ${
              maps.text}; shown are the last ${maps.rows} of ` +
              `${maps.tokens.length} tokens. ${windowWords(maps)}${why}`),
      make(
          'p', {class: 'note'},
          '“Looks 3 back”: there its weight on the text lies on average; “most 1 back (38%)”: that distance has the ' +
              'most; “spread over 60”: as widely as even weights on so many tokens.' +
              (page.runs[run].spans ? ' How far back a head may look is its span, in the part “Spans”.' : '')),
      maps.heads.length > 1 ? make('div', {class: 'controls'}, scale) : '', maps.heads.length > 1 ? heads : '', closely);
}

/** One head closely: its map, the text as one of its queries sees it, its slots, and its weight by distance. */
class HeadView {
  constructor(run, maps, head) {
    Object.assign(this, {run, maps, head});
    this.columns = maps.distance_columns + maps.slot_columns;
    this.weight = weightsOf(maps, head);
    this.first = maps.tokens.length - maps.rows;
    this.row = maps.rows - 1;
    this.column = null;
    this.canvas = make('canvas', {tabindex: '0', role: 'img', 'aria-label': `Weights of ${headName(head, maps)}`});
    this.pick = make('div', {class: 'pick'});
    this.said = make('p', {class: 'said note'}, 'Point at the map or at a token.');
    this.text = make('div', {class: 'reading'});
    this.tokens = maps.tokens.map((token, position) => this.makeToken(token, position));
    drawHead(this.canvas, maps, head);
    this.listen();
  }

  makeToken(token, position) {
    const row = position - this.first, asks = row >= 0;
    const element = make(
        asks ? 'button' : 'span', {
          class: 'token' + (asks ? ' shown' : ''),
          type: asks ? 'button' : null,
          tabindex: asks ? '-1' : null,
        },
        plain(token));
    if (asks)
      for (const event of ['pointerenter', 'click']) element.addEventListener(event, () => this.ask(row));
    this.text.append(element, this.maps.words ? ' ' : '');
    return element;
  }

  listen() {
    const {rows} = this.maps, within = (value, count) => Math.min(count - 1, Math.max(0, value));
    this.canvas.addEventListener('pointermove', event => {
      const area = this.canvas.getBoundingClientRect();
      this.ask(
          within(Math.floor((event.clientY - area.top) / area.height * rows), rows),
          within(Math.floor((event.clientX - area.left) / area.width * this.columns), this.columns));
    });
    this.canvas.addEventListener('keydown', event => {
      const moves = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]}[event.key];
      if (!moves) return;
      event.preventDefault();
      const column = this.column === null ? this.columns - 1 : this.column;
      this.ask(within(this.row + moves[0], rows), within(column + moves[1], this.columns));
    });
  }

  /** Shows where the query of a row looks; of a column how much it gets. */
  ask(row, column = null) {
    Object.assign(this, {row, column});
    const shade = this.shades(row), most = Math.max(0.02, ...shade);
    this.tokens.forEach((element, position) => {
      const share = Math.round(85 * Math.sqrt(shade[position] / most));
      element.style.background = share > 4 ? `color-mix(in srgb, var(--c4) ${share}%, transparent)` : '';
      element.classList.toggle('asks', position === this.first + row);
    });
    const height = this.canvas.clientHeight / this.maps.rows;
    this.pick.style.top = this.canvas.offsetTop + row * height + 'px';
    this.pick.style.height = Math.max(2, height) + 'px';
    this.said.replaceChildren(
        make('b', {}, plain(this.maps.tokens[this.first + row])), ` (token ${this.first + row}) `,
        column === null ? this.bestWords(row) : this.columnWords(row, column));
  }

  /** How much every token gets from a query; those of a column share its weight. */
  shades(row) {
    const {maps} = this, shade = this.tokens.map(() => 0);
    for (let at = 0; at < maps.distance_columns; ++at)
      for (let k = 0; k < maps.distance_bin; ++k) {
        const position = this.first + row - maps.nearest - at * maps.distance_bin - k;
        if (position >= 0) shade[position] += this.weight(row, at) / maps.distance_bin;
      }
    return shade;
  }

  columnWords(row, column) {
    const {maps} = this, stored = storedColumn(maps, column);
    const value = `gives ${number(100 * this.weight(row, stored), 3)}%`;
    if (column >= maps.distance_columns) {
      const slot = (stored - maps.distance_columns) * maps.slot_bin;
      const last = slot + maps.slot_bin - 1;
      return `${value} to ${last > slot ? `the best of slots ${slot} to ${last}` : 'slot ' + slot}`;
    }
    const near = maps.nearest + stored * maps.distance_bin, far = near + maps.distance_bin - 1;
    const token = maps.tokens[this.first + row - near];
    const place = near === far ? near : `${near} to ${far}`;
    return `${value} to ${place} back` + (token === undefined ? ', before the text' : `: ${plain(token)}`);
  }

  /** The place of the text that gets most, which the marks show; then the slots, which have no mark. */
  bestWords(row) {
    const {maps} = this, drawn = stored => storedColumn(maps, stored);
    let best = -1, slot = -1;
    for (let stored = 0; stored < this.columns; ++stored) {
      if (stored >= maps.distance_columns) {
        if (slot < 0 || this.weight(row, stored) > this.weight(row, slot)) slot = stored;
      } else if (this.first + row - maps.nearest - stored * maps.distance_bin >= 0) {
        if (best < 0 || this.weight(row, stored) > this.weight(row, best)) best = stored;
      }
    }
    const said = [];
    if (best >= 0) said.push(`in the text ${this.columnWords(row, drawn(best))}, the strongest mark`);
    if (slot >= 0) said.push(`among the slots, which have no marks, ${this.columnWords(row, drawn(slot))}`);
    return said.join('; ');
  }

  /** The lines below the map: what its columns are, and its colours. */
  axes() {
    const {maps} = this, share = this.columns ? `${100 * maps.distance_columns / this.columns}%` : '0';
    const farthest = maps.nearest + maps.distance_columns * maps.distance_bin - 1;
    const both = maps.distance_columns && maps.slot_columns;
    const distances = make(
        'span', {style: `flex-basis:${share}`}, make('span', {}, `← ${farthest} back`),
        make('span', {}, `${maps.nearest} back`));
    const slots = make('span', {style: 'flex-grow:1; padding-left:.6rem'}, 'persistent slots');
    const colours =
        make('span', {style: 'flex:none'}, '0 ', make('span', {class: 'ramp'}), ` ${number(100 * this.head.most, 2)}%`);
    return [
      both ? make('div', {class: 'divider', style: `left:${share}`}) : '',
      make('div', {class: 'axis'}, maps.distance_columns ? distances : '', maps.slot_columns ? slots : ''),
      make('div', {class: 'axis'}, make('span', {}, 'Rows: the tokens that look, from the top on.'), colours),
    ];
  }

  element() {
    const {run, maps, head} = this, name = headName(head, maps);
    const title = make('h3', {}, name[0].toUpperCase() + name.slice(1), make('small', {}, headWords(maps, head)));
    const map = make('div', {class: 'map'}, this.canvas, this.pick, ...this.axes(), this.said);
    const marks = make(
        'p', {class: 'note'},
        make(
            'small', {}, make('span', {class: 'token asks'}, 'outlined'), ': the token that looks. ',
            make('span', {class: 'token looked'}, 'shaded'), ': what it looks at, the stronger the more. ',
            make('span', {class: 'token shown'}, 'underlined'), ': a click makes it the one that looks.'));
    const text =
        make('div', {class: 'chart'}, make('h3', {}, 'The text, as the outlined token sees it'), this.text, marks);
    const all = make('div', {}, make('div', {class: 'closely'}, make('div', {class: 'chart'}, title, map), text));
    if (head.slots.length) all.append(slotWords(maps, head));
    if (hasCharts && head.context && maps.distance_columns > 1) all.append(distanceChart(run, maps, head));
    requestAnimationFrame(() => {
      this.ask(this.row);
      // The end of the text is what is shown.
      this.text.scrollTop = this.text.scrollHeight;
    });
    return all;
  }
}

/** The slots that a head uses most, with the tokens that make it look there. */
function slotWords(maps, head) {
  const list = make('ul', {class: 'slots'});
  for (const slot of head.slots) {
    const examples = slot.at.flatMap((position, i) => {
      const before =
          maps.tokens.slice(Math.max(0, position - (maps.words ? 4 : 8)), position).join(maps.words ? ' ' : '');
      return [
        i ? ' · ' : '', '…' + plain(before) + (maps.words ? ' ' : ''), make('b', {}, plain(maps.tokens[position]))
      ];
    });
    list.append(
        make('li', {}, `slot ${slot.slot} has ${number(100 * slot.share, 2)}% of the weight, most from `, ...examples));
  }
  return make('div', {}, make('h3', {style: 'margin-top:1rem'}, 'Its slots'), list);
}

/** How the weight falls with the distance: all heads faint, this one strong. */
function distanceChart(run, maps, head) {
  const place = make('div', {style: 'margin-top:.8rem'});
  const line = one => Array.from(distancesOf(one), (y, i) => ({x: maps.nearest + i, y: 100 * y}))
                          .filter(point => point.y > 0 && point.x > 0);
  new LineChart(
      place, 'Weight by distance',
      () =>
          [...maps.heads.filter(one => one !== head && one.context)
               .map(one => ({name: headName(one), points: line(one), colour: style('--c6'), faint: true, width: 1})),
           {name: headName(head, maps), points: line(head), colour: colour(run), width: 2},
  ],
      {
        axis: {name: 'positions back', type: 'logarithmic'},
        unit: '%, mean over the text; grey: the other heads' +
            // Where a query sees itself: no place on this axis.
            (maps.nearest === 0 ? `; itself, 0 back: ${number(100 * distancesOf(head)[0], 2)}%` : ''),
        logY: () => true,
        least: 0.001
      });
  return place;
}
