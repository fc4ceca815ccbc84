// Going through the positions: buttons, slider, keys and the curve of memory. Begins when all other scripts are there.

const speeds = [['slow', 2400], ['normal', 1200], ['fast', 350]];

function goTo(position) {
  state.at = Math.max(0, Math.min(lastPosition, position));
  markRows();
  showDetails();
  showDeck();
  history.replaceState(null, '', '#' + state.at);
}
/** A click on an operation: its place in the direction in which the tape is being run. */
function goToOp(op) {
  stop();
  goTo(state.at > turn ? backwardPosition(op) : forwardPosition(op));
}
function stop() {
  clearInterval(state.timer);
  state.timer = 0;
  const button = byId('play');
  button.textContent = '▶';
  button.setAttribute('aria-label', 'Play');
}
function play() {
  if (state.timer) return stop();
  if (state.at === lastPosition) goTo(0);
  state.timer = setInterval(() => {
    goTo(state.at + 1);
    if (state.at === lastPosition) stop();
  }, Number(byId('speed').value));
  byId('play').textContent = '❚❚';
  byId('play').setAttribute('aria-label', 'Stop');
}

function whereText() {
  const {phase, op} = happening(state.at);
  if (phase === 'turn') return 'The turn: the loss gets the gradient 1';
  const place = phase === 'forward' ? op + 1 : ops.length - op;
  return `${phase === 'forward' ? 'Forward' : 'Backward'} ${place} of ${ops.length}: ${ops[op].name}` +
      (ops[op].scope ? ` in ${ops[op].scope}` : '');
}
function showDeck() {
  const slider = byId('slider'), words = whereText(), memory = memoryAt(state.at);
  slider.value = state.at;
  slider.setAttribute('aria-valuetext', words);
  byId('where').textContent = words;
  byId('kept-now').textContent = bytesText(memory.kept);
  byId('gradients-now').textContent = bytesText(memory.gradients);
  if (byId('used-now')) byId('used-now').textContent = bytesText(memory.used);
  for (const [id, off] of [['first', state.at === 0], ['back', state.at === 0], ['next', state.at === lastPosition],
                           ['last', state.at === lastPosition]])
    byId(id).disabled = off;
  const cursor = document.querySelector('#curve .cursor');
  cursor.setAttribute('x', state.at);
}

const hasUsed = ops.some(op => op.forward.memory.used > 0);
const curveMost = Math.max(1, ...Array.from({length: lastPosition + 1}, (unused, position) => {
  const {kept, gradients} = memoryAt(position);
  return kept + gradients;
}));
/** Allocations are rounded up: beside tensors of a few numbers, a line of them would hide all else. */
const drawsUsed = hasUsed && ops.every(op => Math.max(op.forward.memory.used, op.backward.memory.used) < 4 * curveMost);
function drawCurve() {
  const count = lastPosition + 1, all = Array.from({length: count}, (unused, position) => memoryAt(position));
  const most = Math.max(curveMost, ...all.map(memory => drawsUsed ? memory.used : 0));
  const height = 100, y = bytes => height - bytes / most * (height - 18);
  const area = (from, to) => 'M0 ' + y(from(all[0])) + all.map((memory, i) => `H${i}V${y(to(memory))}H${i + 1}`).join('') +
      all.map((memory, i) => i).reverse().map(i => `V${y(from(all[i]))}H${i}`).join('') + 'Z';
  const plain = {'vector-effect': 'non-scaling-stroke'};
  const drawing = draw('svg', {viewBox: `0 0 ${count} ${height}`, preserveAspectRatio: 'none', 'aria-hidden': 'true'},
                       draw('path', {class: 'kept', d: area(() => 0, memory => memory.kept)}),
                       draw('path', {class: 'gradients', d: area(memory => memory.kept, memory => memory.kept + memory.gradients)}),
                       draw('path', {class: 'turning', d: `M${turn + 0.5} 0V${height}`, ...plain}),
                       draw('rect', {class: 'cursor', x: 0, y: 0, width: 1, height}));
  if (drawsUsed)
    drawing.append(draw('path', {
      class: 'used',
      d: 'M0 ' + y(all[0].used) + all.map((memory, i) => `V${y(memory.used)}H${i + 1}`).join(''),
      ...plain
    }));
  const words = draw('svg', {'aria-hidden': 'true'}, draw('text', {x: 3, y: 10}, bytesText(most)),
                     draw('text', {x: '50%', y: 10, dx: 5}, 'backward →'),
                     draw('text', {x: '50%', y: 10, dx: -5, 'text-anchor': 'end'}, 'forward'));
  const place = byId('curve');
  place.replaceChildren(drawing, words);
  const follow = event => {
    const box = place.getBoundingClientRect();
    stop();
    goTo(Math.floor((event.clientX - box.left) / box.width * count));
  };
  place.addEventListener('pointerdown', event => {
    place.setPointerCapture(event.pointerId);
    follow(event);
  });
  place.addEventListener('pointermove', event => {
    if (event.buttons & 1) follow(event);
  });
}

function drawDeck() {
  const button = (id, sign, words, act) =>
      make('button', {class: 'button', id, type: 'button', 'aria-label': words, title: words, onclick: act}, sign);
  const by = step => () => {
    stop();
    goTo(step);
  };
  const speed = make('select', {id: 'speed', class: 'button speed', 'aria-label': 'Speed', onchange: () => {
    if (!state.timer) return;
    stop();
    play();
  }}, speeds.map(([words, wait]) => make('option', {value: wait, selected: words === 'normal'}, words)));
  byId('deck').replaceChildren(
      make('div', {class: 'transport'}, button('first', '⇤', 'To the beginning (Home)', by(0)),
           button('back', '←', 'One step back (left arrow)', () => by(state.at - 1)()),
           button('play', '▶', 'Play', play), button('next', '→', 'One step on (right arrow)', () => by(state.at + 1)()),
           button('last', '⇥', 'To the end (End)', by(lastPosition)),
           button('turn', 'loss', 'To the loss', by(turn)),
           make('input', {type: 'range', id: 'slider', min: 0, max: lastPosition, step: 1, 'aria-label': 'Step',
                          oninput: event => by(Number(event.target.value))()}), speed,
           make('p', {class: 'where', id: 'where', 'aria-live': 'polite'})),
      make('div', {id: 'curve', title: 'Memory after every step'}),
      make('p', {class: 'keys'},
           make('span', {}, make('i'), 'kept by the tape: ', make('b', {id: 'kept-now'})),
           make('span', {}, make('i', {class: 'gradients'}), 'gradients of values: ', make('b', {id: 'gradients-now'})),
           hasUsed ? make('span', {}, drawsUsed ? make('i', {class: 'used'}) : '', 'all memory of the step: ', make('b', {id: 'used-now'})) : '',
           make('span', {class: 'hint'}, 'Keys: ← → Home End, space plays')));
}

function addTheme() {
  const dark = () => root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  byId('tools').append(make('button', {class: 'button', id: 'theme', type: 'button', onclick: () => {
    root.dataset.theme = dark() ? 'light' : 'dark';
  }}, 'Light or dark'));
}
function addKeys() {
  const acts = {
    ArrowLeft: () => goTo(state.at - 1),
    ArrowRight: () => goTo(state.at + 1),
    Home: () => goTo(0),
    End: () => goTo(lastPosition)
  };
  document.addEventListener('keydown', event => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const own = event.target.closest('input, select, summary, button');
    if (event.key === ' ' && !own) {
      event.preventDefault();
      play();
    } else if (acts[event.key] && !event.target.closest('input, select')) {
      event.preventDefault();
      stop();
      acts[event.key]();
    }
  });
}

function begin() {
  byId('tape').append(make('div', {class: 'heads'}, make('span', {}, 'The tape, downwards as its operations ran'),
                           allScopes().length ? make('button', {class: 'button', type: 'button', onclick: () => foldAll(true)}, 'fold') : '',
                           allScopes().length ? make('button', {class: 'button', type: 'button', onclick: () => foldAll(false)}, 'unfold') : ''),
                      make('div', {id: 'rows'}));
  if (ops.length > 60) state.folded = new Set(allScopes().filter(box => box.depth === 1).map(box => box.id));
  drawRows();
  drawDeck();
  drawCurve();
  addTheme();
  addKeys();
  document.querySelector('details.all').open = false;
  const asked = () => Number.parseInt(location.hash.slice(1), 10);
  addEventListener('hashchange', () => {
    if (Number.isFinite(asked()) && asked() !== state.at) goTo(asked());
  });
  goTo(Number.isFinite(asked()) ? asked() : 0);
  root.dataset.ready = 'true';
}
begin();
