'use strict';
// The part "Tensors", and tables that are sorted by a click on a heading.

function drawTensors() {
  const place = byId('tensor-tables');
  const some = perRun(place, 'tensors', run => (page.studies[run].tensors || []).length, showTensors);
  place.closest('section').classList.toggle('hidden', !some);
}

function showTensors(run) {
  const study = page.studies[run], gradients = study.gradients || {}, reported = Object.keys(gradients).length > 0;
  const body = make('tbody');
  for (const tensor of study.tensors) {
    const canvas =
        make('canvas', {role: 'img', 'aria-label': `Histogram from ${number(tensor.least)} to ${number(tensor.most)}`});
    whenNear(canvas, () => drawHistogram(canvas, floats(tensor.histogram)));
    const gradient = gradients[tensor.name] || {};
    const cell = value =>
        make('td', {class: 'number', 'data-order': Number.isFinite(value) ? value : ''}, number(value));
    body.append(make(
        'tr', {}, make('th', {scope: 'row', 'data-order': tensor.name}, make('code', {}, tensor.name)),
        make('td', {class: 'number', 'data-order': tensor.count}, tensor.shape.join(' × ') || '1'), cell(tensor.norm),
        cell(tensor.norm / Math.sqrt(Math.max(1, tensor.count))), cell(tensor.least), cell(tensor.most),
        ...(reported ?
                [
                  cell(gradient.norm ?? NaN),
                  make(
                      'td', {class: 'number', 'data-order': gradient.clipped ?? ''},
                      gradient.clipped === undefined ? '-' : number(100 * gradient.clipped, 3) + '%')
                ] :
                []),
        make('td', {}, canvas)));
    if (tensor.not_finite)
      body.lastChild.firstChild.append(
          make('small', {class: 'warning'}, `${tensor.not_finite} numbers are not finite`));
  }
  const names = [
    'tensor', 'shape', 'norm', 'RMS', 'least', 'most', ...(reported ? ['gradient norm', 'clipped'] : []), 'histogram'
  ];
  const table = make(
      'table', {class: 'tensors'},
      make('thead', {}, make('tr', {}, ...names.map(name => make('th', {scope: 'col'}, name)))), body);
  sortable(table, names.length - 1, 'tensors ' + run);
  return make('div', {class: 'scroll tall-scroll', tabindex: '0', role: 'region', 'aria-label': 'Tensors'}, table);
}

function drawHistogram(canvas, counts) {
  const scale = devicePixelRatio || 1, width = 128, height = 24;
  [canvas.width, canvas.height] = [width * scale, height * scale];
  const context = canvas.getContext('2d'), most = Math.max(1, ...counts), bar = canvas.width / counts.length;
  context.fillStyle = style('--accent');
  counts.forEach((count, i) => {
    // Square roots, so that rare numbers are seen.
    const size = Math.sqrt(count / most) * canvas.height;
    if (count > 0)
      context.fillRect(i * bar, canvas.height - Math.max(scale, size), Math.max(1, bar - 0.5), Math.max(scale, size));
  });
}

/**
 * Headings become buttons that sort the rows by `data-order`, or the text of the cells. The last columns may be left
 * out. A table of the same name that is drawn anew is sorted as it was.
 */
function sortable(table, columns, name) {
  const headings = [...table.tHead.rows[0].cells].slice(0, columns);
  const sort = ({column, down}) => {
    for (const other of headings) other.removeAttribute('aria-sort');
    headings[column].setAttribute('aria-sort', down ? 'descending' : 'ascending');
    sortRows(table, column, down);
  };
  headings.forEach((heading, column) => {
    const button = make('button', {class: 'sort', type: 'button'}, ...heading.childNodes);
    button.addEventListener('click', () => {
      view.sorted.set(name, {column, down: heading.getAttribute('aria-sort') === 'ascending'});
      sort(view.sorted.get(name));
    });
    heading.append(button);
  });
  const before = view.sorted.get(name);
  if (before && before.column < headings.length) sort(before);
}
function sortRows(table, column, down) {
  const key = row => {
    const cell = row.cells[column], order = cell.dataset.order;
    return order === undefined ? cell.textContent : order;
  };
  const rows = [...table.tBodies[0].rows].map(row => ({row, key: key(row)}));
  const isNumber = rows.every(({key}) => key === '' || !Number.isNaN(Number(key)));
  rows.sort((a, b) => {
    // What is missing stands last, whichever way.
    if (a.key === '' || b.key === '') return (a.key === '') - (b.key === '');
    const order = isNumber ? Number(a.key) - Number(b.key) : a.key.localeCompare(b.key);
    return down ? -order : order;
  });
  table.tBodies[0].append(...rows.map(({row}) => row));
}
