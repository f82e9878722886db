/*
 * One map, large: queries down, keys across, a cell under the pointer or the
 * cursor read out.  As with the lines, the canvas is as large as what is seen.
 */

const cursor = { row: -1, col: -1 }; /* as indices into state.rows, .cols */

/* Where everything is, in CSS pixels. */
function layout() {
    const view = $('map-scroller'), c = $('map-canvas').getContext('2d');
    const rows = state.rows.length, cols = state.cols.length;
    c.font = styled('--label-font');
    const widest = (axis, shown) => {
        let w = 16;
        for (const i of shown.slice(0, 2000))
            w = Math.max(w, c.measureText(label(axis, i)).width);
        return Math.min(Math.ceil(w), 110);
    };
    const left = widest(data.query, state.rows) + 14;
    const wide = widest(data.key, state.cols), lean = wide * 0.71 + 6;
    const room = view.clientWidth - left - 8;
    const tall = parseFloat(getComputedStyle(view).maxHeight) - wide - 24;
    let cell = Math.min(room / cols, Math.max(tall / rows, 14), 60);
    const slanted = cell >= 16;
    if (slanted) /* the last label leans out */
        cell = Math.min(cell, (room - lean) / (cols - 0.5));
    cell = Math.max(Math.floor(cell * 4) / 4, data.weights ? 4 : 2.5)
        * state.zoom;
    /* Those of a wide and low matrix are higher than wide. */
    const high = data.weights ? cell : Math.max(cell, Math.min(22,
        tall / rows));
    return { view, rows, cols, cw: cell, ch: high, left, slanted,
        head: Math.ceil(slanted ? lean + 12 : wide + 14),
        pad: slanted ? Math.max(8, Math.ceil(lean - cell / 2)) : 8 };
}

/* Text of at most so many pixels. */
function fit(c, text, width) {
    if (c.measureText(text).width <= width)
        return text;
    const all = Array.from(text);
    while (all.length && c.measureText(all.join('') + '\u2026').width > width)
        all.length = Math.min(all.length - 1, 40);
    return all.join('') + '\u2026';
}

/* Every so many labels, and that of the cursor without its neighbours. */
function labelled(i, at, every) {
    return i === at || i % every === 0 && (at < 0 || Math.abs(i - at) >= every);
}

/* Those of cells whose middle is seen, whole: half a letter stands out. */
function drawLabels(c, g, top, from) {
    const every = (cell) => Math.max(1, Math.ceil(13 / cell));
    const ink = styled('--ink'), quiet = styled('--quiet');
    c.font = styled('--label-font');
    c.textBaseline = 'middle';
    c.save();
    c.beginPath();
    c.rect(0, g.head - 7, g.left, c.canvas.height);
    c.clip();
    c.textAlign = 'right';
    for (let i = from.row; i < from.rowEnd; i++)
        if (labelled(i, cursor.row, every(g.ch))
            && (i + 0.5) * g.ch > top.y) {
            c.fillStyle = i === cursor.row ? ink : quiet;
            c.fillText(fit(c, label(data.query, state.rows[i]), 110),
                g.left - 8, g.head + (i + 0.5) * g.ch - top.y);
        }
    c.restore();
    c.save();
    c.beginPath();
    c.rect(g.left - 7, 0, c.canvas.width, g.head);
    c.clip();
    c.textAlign = 'left';
    for (let j = from.col; j < from.colEnd; j++)
        if (labelled(j, cursor.col, every(g.cw))
            && (j + 0.5) * g.cw > top.x) {
            c.fillStyle = j === cursor.col ? ink : quiet;
            c.save();
            c.translate(g.left + (j + 0.5) * g.cw - top.x, g.head - 8);
            c.rotate(g.slanted ? -Math.PI / 4 : -Math.PI / 2);
            c.fillText(fit(c, label(data.key, state.cols[j]), 110), 0, 0);
            c.restore();
        }
    c.restore();
}

/* The cells, and in large ones their numbers. */
function drawCells(c, g, top, from) {
    const m = map(state.layer, state.head), [lo, hi] = range(m);
    const rows = state.rows.slice(from.row, from.rowEnd);
    const cols = state.cols.slice(from.col, from.colEnd);
    const x = (j) => g.left + (from.col + j) * g.cw - top.x;
    const y = (i) => g.head + (from.row + i) * g.ch - top.y;
    const picture = document.createElement('canvas');
    const image = paint(m, rows, cols, Infinity);
    picture.width = image.width;
    picture.height = image.height;
    picture.getContext('2d').putImageData(image, 0, 0);
    c.imageSmoothingEnabled = false;
    c.drawImage(picture, x(0), y(0), cols.length * g.cw,
        rows.length * g.ch);
    c.fillStyle = styled('--paper');
    if (Math.min(g.cw, g.ch) >= 10) {
        for (let i = 0; i <= rows.length; i++)
            c.fillRect(x(0), y(i) - 0.5, cols.length * g.cw, 1);
        for (let j = 0; j <= cols.length; j++)
            c.fillRect(x(j) - 0.5, y(0), 1, rows.length * g.ch);
    }
    if (g.cw < 46 || !data.weights)
        return;
    c.font = styled('--number-font');
    c.textAlign = 'center';
    rows.forEach((t, i) => cols.forEach((s, j) => {
        const w = m[t * S + s];
        c.fillStyle = colour(w, lo, hi) > 110 ? '#111' : '#fff';
        c.fillText(digits(w), x(j + 0.5), y(i + 0.5));
    }));
}

function drawCursor(c, g, top) {
    const x = g.left + cursor.col * g.cw - top.x;
    const y = g.head + cursor.row * g.ch - top.y;
    if (cursor.row < 0)
        return;
    c.strokeStyle = styled('--mark');
    c.lineWidth = 2;
    c.globalAlpha = 0.55;
    c.strokeRect(g.left - top.x, y, g.cols * g.cw, g.ch);
    c.strokeRect(x, g.head - top.y, g.cw, g.rows * g.ch);
    c.globalAlpha = 1;
    c.lineWidth = 3;
    c.strokeRect(x, y, g.cw, g.ch);
}

function drawMapReadout() {
    const t = state.rows[cursor.row], s = state.cols[cursor.col];
    say('map-readout', cursor.row < 0
        ? headName(state.layer, state.head)
            + ': point at a cell, or go there with the arrow keys.'
        : inWords(data.query, t) + (data.weights ? ' \u2192 ' : ', ')
            + inWords(data.key, s) + ': '
            + digits(map(state.layer, state.head)[t * S + s]));
}

function drawHeatMap() {
    const g = layout(), { view } = g, sheet = $('map-sheet').style;
    const height = g.head + g.rows * g.ch + 8;
    sheet.width = Math.max(1, g.left + g.cols * g.cw + g.pad) + 'px';
    sheet.height = height + 'px';
    view.setAttribute('aria-label', headName(state.layer, state.head));
    const width = view.clientWidth, top = { x: view.scrollLeft,
        y: view.scrollTop };
    const seen = Math.min(view.clientHeight, height);
    const c = fresh($('map-canvas'), width, seen);
    const from = {
        row: Math.max(0, Math.floor(top.y / g.ch)),
        rowEnd: Math.min(g.rows, Math.ceil((top.y + seen) / g.ch)),
        col: Math.max(0, Math.floor(top.x / g.cw)),
        colEnd: Math.min(g.cols, Math.ceil((top.x + width) / g.cw)),
    };
    drawMapReadout();
    if (!g.rows || !g.cols)
        return;
    drawLabels(c, g, top, from);
    c.save();
    c.beginPath();
    c.rect(g.left - 2, g.head - 2, width, seen);
    c.clip();
    drawCells(c, g, top, from);
    drawCursor(c, g, top);
    c.restore();
}

/* --- The pointer and the keys --- */

function pointAt(row, col) {
    const inside = row >= 0 && row < state.rows.length && col >= 0
        && col < state.cols.length;
    cursor.row = inside ? row : -1;
    cursor.col = inside ? col : -1;
    redraw();
}

/* The cursor's cell is brought into view. */
function reveal() {
    const g = layout(), { view } = g;
    const x = cursor.col * g.cw, y = cursor.row * g.ch;
    view.scrollLeft = Math.min(x, Math.max(view.scrollLeft,
        x + g.cw - view.clientWidth + g.left + 8));
    view.scrollTop = Math.min(y, Math.max(view.scrollTop,
        y + g.ch - view.clientHeight + g.head + 8));
}

function mapKey(e) {
    const row = Math.max(cursor.row, 0), col = Math.max(cursor.col, 0);
    const rows = state.rows.length, cols = state.cols.length;
    const to = step(e.key, e.key === 'Home' || e.key === 'End' ? col
        : row * cols + col, rows * cols, cols);
    if (e.key === 'PageUp' || e.key === 'PageDown') {
        setLayer(state.layer + (e.key === 'PageUp' ? -1 : 1));
    } else if (e.key === 'Escape' && L * H > 1) {
        showView('grid');
        focusGrid();
    } else if (to >= 0 && rows && cols) {
        if (cursor.row < 0)
            pointAt(0, 0);
        else if (e.key === 'Home' || e.key === 'End')
            pointAt(row, e.key === 'Home' ? 0 : cols - 1);
        else if (e.key === 'ArrowUp' || e.key === 'ArrowDown'
            || Math.floor(to / cols) === row)
            pointAt(Math.floor(to / cols), to % cols);
        reveal();
    } else {
        return;
    }
    e.preventDefault();
}

function listenToMap() {
    const view = $('map-scroller');
    const point = (e) => {
        const g = layout(), box = view.getBoundingClientRect();
        const x = e.clientX - box.left - view.clientLeft - g.left;
        const y = e.clientY - box.top - view.clientTop - g.head;
        pointAt(y < 0 ? -1 : Math.floor((y + view.scrollTop) / g.ch),
            x < 0 ? -1 : Math.floor((x + view.scrollLeft) / g.cw));
    };
    view.addEventListener('pointermove', point);
    view.addEventListener('pointerdown', point);
    view.addEventListener('scroll', redraw, { passive: true });
    view.addEventListener('keydown', mapKey);
}
