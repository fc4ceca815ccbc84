// What happens at the present position: the operation as a formula, its tensors, and gradients as they arrive.

/** Rows and columns that a shape is shown in, and after how many rows there is a gap. */
function sizesOf(shape, count) {
  let columns = shape.length ? shape[shape.length - 1] : 1;
  if (columns === 1) columns = shape.length > 1 ? shape[shape.length - 2] : count;
  return {columns: Math.max(1, columns), group: shape.length > 2 ? shape[shape.length - 2] : 0};
}
const largest = (...lists) => Math.max(0, ...lists.flat().map(number => Math.abs(number ?? 0)));

/** Numbers as cells, blue above zero and orange below, the stronger the farther from it. */
function grid(numbers, shape, scale = largest(numbers)) {
  const {columns, group} = sizesOf(shape, numbers.length), small = columns > 8;
  const low = Math.min(...numbers.map(number => number ?? 0)), high = Math.max(...numbers.map(number => number ?? 0));
  const place = make('div', {
    class: 'grid' + (small ? ' small' : ''),
    role: 'img',
    'aria-label': `${plural(numbers.length, 'number')} from ${numberText(low)} to ${numberText(high)}`
  });
  place.style.gridTemplateColumns = `repeat(${columns}, auto)`;
  numbers.forEach((number, index) => {
    if (group > 1 && index > 0 && index % (group * columns) === 0) place.append(make('span', {class: 'gap'}));
    const cell = make('span', {title: `${Math.floor(index / columns)}, ${index % columns}: ${number}`},
                      small ? '' : numberText(number));
    const share = scale > 0 && number !== null ? Math.min(1, Math.abs(number) / scale) : 0;
    if (share > 0.01) cell.style.background = `rgb(var(${number < 0 ? '--minus' : '--plus'}) / ${(0.62 * share).toFixed(3)})`;
    place.append(cell);
  });
  return place;
}
const tooLarge = shape => make('p', {class: 'none'}, `${
    shape.reduce((all, size) => all * size, 1).toLocaleString('en')} numbers, more than are shown`);

const role = words => words ? make('span', {class: 'role'}, words) : '';
function tensorCard(value, scope, taken = '', shape = values[value].shape) {
  const {kind, numbers, dtype, bytes} = values[value];
  const whole = shapeText(shape) === shapeText(values[value].shape);
  return make('div', {class: 'tensor'},
              make('p', {}, make('b', {}, nameOf(value, scope)), ` ${shapeText(shape)} `, role(taken), taken ? ' ' : '',
                   make('small', {}, [kind === 'output' ? '' : kind, dtype, whole ? bytesText(bytes) : 'rows of ' +
                                      shapeText(values[value].shape)].filter(word => word).join(', '))),
              numbers ? grid(numbers, values[value].shape) : tooLarge(shape));
}

function formula(op) {
  const code = make('code', {});
  op.outputs.forEach((output, i) => code.append(i ? ', ' : '', make('b', {class: 'value'}, nameOf(output))));
  code.append(' = ', make('b', {}, op.name), '(');
  op.inputs.forEach((input, i) => {
    code.append(i ? ', ' : '');
    code.append(input.value < 0 ? '–' : make('span', {class: values[input.value].wants_gradient ? 'value' : ''},
                                             nameOf(input.value, op.scope)));
  });
  code.append(')');
  return make('div', {class: 'formula'}, code);
}
/** d loss by d value: how a gradient is written. */
const gradientName = (value, scope) => make('span', {class: 'gradient'}, '∂ ' + nameOf(value, scope));

const hasGradient = value => shares[value].length > 0 || tape.losses.includes(value);

function backwardFormula(op) {
  const code = make('code', {});
  const given = [...new Set(op.backward.shares.map(share => share.value))];
  if (given.length === 0) code.append('nothing');
  given.forEach((value, i) => code.append(i ? ', ' : '', gradientName(value, op.scope)));
  code.append(' ← ', make('b', {}, op.name + ' backward'), '(');
  op.outputs.filter(hasGradient).forEach((output, i) => code.append(i ? ', ' : '', gradientName(output, op.scope)));
  if (op.kept.length) code.append('; kept: ' + op.kept.map(kept => kept.name).join(', '));
  code.append(')');
  return make('div', {class: 'formula'}, code);
}

const kernelsText = pass => pass.kernels.length === 0 ?
    'No kernel ran.' :
    `${pass.kernels.length === 1 ? 'Kernel' : 'Kernels'}: ${pass.kernels.join(', ')}; ${timeText(pass.ms)}.`;

function keptTable(op) {
  if (op.kept.length === 0) return make('p', {class: 'quiet'}, 'It keeps no tensor for backward.');
  return make('table', {class: 'kept'},
              make('thead', {}, make('tr', {}, ...['kept as', 'which is', 'shape', 'bytes'].map(
                                                   (word, i) => make('th', {class: i === 3 ? 'number' : null}, word)))),
              make('tbody', {}, op.kept.map(kept => make('tr', {}, make('td', {}, make('code', {}, kept.name)),
                                                         make('td', {}, kept.value < 0 ? 'its own' : nameOf(kept.value, op.scope)),
                                                         make('td', {}, shapeText(kept.shape)),
                                                         make('td', {class: 'number'}, bytesText(kept.bytes))))));
}

/** What is said of a gradient that is whole, and compared with differences or not. */
function verdict(value) {
  const {numeric, difference, shares: view} = values[value];
  if (!numeric)
    return make('p', {class: 'quiet'}, view ? 'All of it has arrived. It is a view of another tensor, so a difference would change both.' :
                                              'All of it has arrived. It was not compared with differences.');
  const good = difference !== null && difference <= tape.tolerance;
  return make('p', {class: 'check ' + (good ? 'good' : 'bad')},
              `${good ? '✓' : '✗'} All of it has arrived. From differences of the loss it is ${
                  difference === null ? 'no number' : 'at most ' + numberText(difference, 2)} of its largest number away; ${
                  numberText(tape.tolerance, 2)} is allowed.`);
}
const titled = (words, numbers, shape, scale) =>
    make('div', {}, make('h4', {}, words), grid(numbers, shape, scale));

const howWords = {
  set: 'the first share: it is written',
  add: 'added to what is there',
  passed: 'the tensor itself is handed over, nothing is computed',
  rows: 'rows of a table, kept as a list'
};
function shareCard(share, position, op) {
  const all = shares[share.value], count = all.length, {scope} = op, taken = roleIn(op, share.value);
  const number = all.findIndex(other => other.position === position && other.how === share.how &&
                                        String(other.after) === String(share.after)) + 1;
  const card = make('div', {class: 'tensor share'},
                    make('p', {}, make('span', {class: 'how ' + share.how}, share.how.toUpperCase()),
                         make('b', {class: 'gradient'}, '∂ ' + nameOf(share.value, scope)), ` ${shapeText(share.shape)} `,
                         role(taken), taken ? ' ' : '',
                         make('small', {}, howWords[share.how] +
                              (count > 1 ? `; share ${number} of ${count}` : ''))));
  const {before, after} = share, {numeric} = values[share.value], whole = number === count;
  if (!after) {
    if (share.how !== 'rows') card.append(tooLarge(share.shape));
    return card;
  }
  const compared = whole && numeric && numeric.length === after.length;
  const scale = largest(before || [], after, compared ? numeric : []), sum = make('div', {class: 'sum'});
  if (before && before.some(was => was !== 0)) {
    const added = after.map((now, i) => now === null || before[i] === null ? null : now - before[i]);
    sum.append(titled('was', before, share.shape, scale), titled('+ this share', added, share.shape, scale),
               titled('= now', after, share.shape, scale));
  } else {
    sum.append(titled(before ? 'now; it was zero' : 'now', after, share.shape, scale));
  }
  if (compared) sum.append(titled('by differences of the loss', numeric, share.shape, scale));
  card.append(sum);
  if (whole) card.append(verdict(share.value));
  return card;
}

function forwardDetails(op, index) {
  const inputs = op.inputs.filter(input => input.value >= 0);
  const parts = [
    formula(op),
    make('p', {}, op.outputs.length === 1 ? 'Computes ' : 'Compute ', op.outputs.map(output => nameOf(output)).join(', '),
         ' and goes onto the tape. ', make('span', {class: 'quiet'}, kernelsText(op.forward)))
  ];
  parts.push(make('h3', {}, 'Makes'), make('div', {class: 'tensors'}, op.outputs.map(output => tensorCard(output, op.scope, rolesOf(output)))));
  parts.push(make('h3', {}, 'From'),
             make('div', {class: 'tensors'}, inputs.map(input => tensorCard(input.value, op.scope, roleIn(op, input.value), input.shape))));
  if (op.forward.shares.length)
    parts.push(make('h3', {}, 'Gradients that are known already'),
               make('div', {class: 'tensors'}, op.forward.shares.map(share => shareCard(share, index, op))));
  parts.push(make('h3', {}, 'Keeps for backward'), keptTable(op));
  return parts;
}
function backwardDetails(op, index) {
  const parts = [backwardFormula(op)];
  if (!op.reached)
    return [...parts, make('p', {}, 'No gradient reached it: the loss does not depend on it. It is taken off the tape.')];
  parts.push(make('p', {}, 'Its rule gives each input a share of its gradient. Then it leaves the tape',
                  op.kept_bytes ? `, and what nobody else keeps of its ${bytesText(op.kept_bytes)} is free. ` : '. ',
                  make('span', {class: 'quiet'}, kernelsText(op.backward))));
  const arrived = op.outputs.filter(output => values[output].gradient);
  if (arrived.length)
    parts.push(make('h3', {}, 'Reads'), make('div', {class: 'tensors'}, arrived.map(output =>
      make('div', {class: 'tensor'}, make('p', {}, make('b', {class: 'gradient'}, '∂ ' + nameOf(output)),
                                          ` ${shapeText(values[output].shape)} `, role(rolesOf(output))),
           grid(values[output].gradient, values[output].shape)))));
  parts.push(make('h3', {}, 'Gives'));
  if (op.backward.shares.length === 0)
    parts.push(make('p', {class: 'quiet'}, 'Nothing: none of its inputs needs a gradient, or all of it was given in the forward pass.'));
  else
    parts.push(make('div', {class: 'tensors'},
                    op.backward.shares.map(share => shareCard(share, backwardPosition(index), op))));
  return parts;
}
function turnDetails() {
  const names = tape.losses.map(loss => nameOf(loss)).join(' and ');
  const compared = tape.worst_value < 0 ? [] : [
    make('h3', {}, 'How right the gradients are'),
    make('p', {}, 'A gradient says how the loss changes with one number. So each number, of parameters and of values on ' +
         `the way, was moved by ${numberText(tape.moved_by)} up and down in its place, and the step run forward again: ` +
         `the difference of the two losses over ${numberText(2 * tape.moved_by)} is the same derivative, without autograd.`),
    make('p', {id: 'agreed'}, `${tape.agreed === tape.checked ? '✓' : '✗'} ${tape.agreed.toLocaleString('en')} of ` +
         `${tape.checked.toLocaleString('en')} agree: they are at most ${numberText(tape.tolerance, 2)} of the largest ` +
         'derivative of their tensor apart (of 0.001, where all are smaller). Most apart, ' +
         `${numberText(tape.worst, 2)}, are those of ${values[tape.worst_value].name}:`),
    make('div', {class: 'tensors'}, make('div', {class: 'tensor share'}, make('p', {}, make('b', {class: 'gradient'},
         '∂ ' + values[tape.worst_value].name)), make('div', {class: 'sum'},
         titled('gradient', values[tape.worst_value].gradient, values[tape.worst_value].shape),
         titled('by differences of the loss', values[tape.worst_value].numeric, values[tape.worst_value].shape))))
  ];
  return [
    make('div', {class: 'formula'}, make('code', {}, tape.losses.map((loss, i) => [i ? ', ' : '', gradientName(loss), ' = 1']).flat())),
    make('p', {}, `The forward pass is done: ${names} = ${numberText(tape.loss, 6)}. From here the same list is run from its end. `,
         'The gradient of the loss with respect to itself is 1; every operation turns the gradient of its output into shares ' +
         'for its inputs. An input stands above all operations that read it, so when its turn comes its gradient is whole.'),
    make('div', {class: 'tensors'}, tape.losses.map(loss => tensorCard(loss, ''))), ...compared
  ];
}

function showDetails() {
  const {phase, op} = happening(state.at), place = byId('now');
  const words = phase === 'turn' ? 'The turn' :
      phase === 'forward'        ? `Forward, ${op + 1} of ${ops.length}` :
                                   `Backward, ${ops.length - op} of ${ops.length}`;
  const title = phase === 'turn' ? 'The loss gets the gradient 1' : `${op} ${ops[op].name}`;
  const scope = op >= 0 && ops[op].scope ? make('small', {}, ' in ' + ops[op].scope) : '';
  const parts = phase === 'turn' ? turnDetails() :
      phase === 'forward'        ? forwardDetails(ops[op], op) :
                                   backwardDetails(ops[op], op);
  place.replaceChildren(make('p', {class: 'phase'}, words), make('h2', {}, title, scope), ...parts);
  place.scrollTop = 0;
}
