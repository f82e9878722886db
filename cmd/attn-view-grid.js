/*
 * All maps as small pictures, a row a layer, a column a head.  One is drawn
 * when it first comes into view, as many a frame as take a few milliseconds.
 */

const grid = {
    cells: [],         /* the buttons, layer by layer */
    seen: new Set(),   /* those in view */
    dirty: new Set(),  /* those whose picture is not, or no longer, right */
};

function makeGrid() {
    const table = $('cells');
    table.style.setProperty('--heads', H);
    table.setAttribute('aria-label', 'All layers and heads');
    const row = () => {
        const r = element(table, 'div', { className: 'gridrow' });
        r.setAttribute('role', 'row');
        return r;
    };
    const name = (r, role, text) => {
        element(r, 'div', { className: 'gridname', textContent: text })
            .setAttribute('role', role);
    };
    const heads = row();
    name(heads, 'columnheader', '');
    for (let h = 0; h < H; h++)
        name(heads, 'columnheader', headNumber(h));
    for (let l = 0; l < L; l++) {
        const r = row();
        name(r, 'rowheader', layerNumber(l));
        for (let h = 0; h < H; h++)
            makeCell(r, l, h);
    }
    heads.firstChild.textContent = 'layer \u2193 head \u2192';
    rove(grid.cells, 0);
    const observer = new IntersectionObserver((entries) => {
        for (const e of entries)
            grid.seen[e.isIntersecting ? 'add' : 'delete'](e.target.firstChild);
        redraw();
    }, { rootMargin: '100px' });
    for (const cell of grid.cells)
        observer.observe(cell.parentNode);
}

function makeCell(row, l, h) {
    const box = element(row, 'div', { className: 'gridcell' });
    box.setAttribute('role', 'gridcell');
    const cell = element(box, 'button', { type: 'button' });
    const k = grid.cells.push(cell) - 1;
    cell.setAttribute('aria-label', headName(l, h));
    element(cell, 'canvas', {}).setAttribute('aria-hidden', 'true');
    const name = () => say('grid-readout', headName(l, h));
    cell.addEventListener('pointerenter', name);
    cell.addEventListener('focus', name);
    cell.addEventListener('click', () => {
        state.layer = l;
        state.head = h;
        showView('map');
        $('map-scroller').focus();
    });
    cell.addEventListener('keydown', (e) => {
        const to = step(e.key, k, grid.cells.length, H);
        if (to < 0)
            return;
        e.preventDefault();
        rove(grid.cells, to);
        grid.cells[to].focus();
    });
}

/* Every picture is to be made anew. */
function spoilGrid() {
    grid.dirty = new Set(grid.cells);
}

function drawCell(cell) {
    const k = grid.cells.indexOf(cell);
    const image = paint(map(Math.floor(k / H), k % H), state.rows, state.cols,
        128);
    const canvas = cell.firstChild;
    canvas.width = image.width;
    canvas.height = image.height;
    canvas.getContext('2d').putImageData(image, 0, 0);
    grid.dirty.delete(cell);
}

function drawGrid() {
    const start = performance.now();
    for (const old of $('cells').querySelectorAll('[aria-current]'))
        old.removeAttribute('aria-current');
    grid.cells[state.layer * H + state.head].setAttribute('aria-current',
        'true');
    if (!$('grid-readout').textContent)
        say('grid-readout', 'Choose a map to enlarge it.');
    for (const cell of grid.seen) {
        if (!grid.dirty.has(cell))
            continue;
        if (performance.now() - start > 8) {
            redraw();
            return;
        }
        drawCell(cell);
    }
}
