/*
 * The lines of one layer: queries left, keys right, a line a weight in the
 * colour of its head.  A token that is pointed at, or has the focus, shows its
 * lines alone; a click or Enter holds it.
 *
 * The canvas is as large as what can be seen of the sheet and stays in view
 * while the sheet scrolls, so drawing costs what is seen, not what there is.
 */

const lines = {
    side: null,   /* 'query' or 'key': where a token is looked at */
    index: 0,     /* which */
    held: false,
};

/* --- Heads --- */

function makeHeadKeys() {
    for (let h = 0; h < H; h++)
        element($('keys'), 'button', { type: 'button', className: 'headkey',
            textContent: headNumber(h), title: 'Head ' + headNumber(h)
                + ': click to show or hide, with Shift to show alone' });
    const all = element($('keys'), 'button', { type: 'button',
        id: 'all', textContent: 'all' });
    const none = element($('keys'), 'button', { type: 'button',
        id: 'none', textContent: 'none' });
    all.addEventListener('click', () => setHeads(() => true));
    none.addEventListener('click', () => setHeads(() => false));
    const keys = [...$('keys').children];
    rove(keys, 0);
    keys.forEach((key, h) => {
        if (h < H)
            key.addEventListener('click', (e) => setHeads((i) =>
                e.shiftKey ? i === h : i === h ? !state.on[i] : state.on[i]));
        key.addEventListener('keydown', (e) => {
            const to = step(e.key, h, keys.length, 1);
            if (e.key === ' ' && e.shiftKey && h < H) {
                e.preventDefault();
                setHeads((i) => i === h);
            } else if (to >= 0) {
                e.preventDefault();
                rove(keys, to);
                keys[to].focus();
            }
        });
    });
}

function setHeads(on) {
    state.on = state.on.map((_, h) => on(h));
    redraw();
}

function drawHeadKeys() {
    const keys = $('keys').children;
    for (let h = 0; h < H; h++) {
        keys[h].setAttribute('aria-pressed', state.on[h]);
        keys[h].setAttribute('aria-label', 'head ' + headNumber(h));
        keys[h].style.setProperty('--head', headColour(h, 1));
    }
}

/* --- Tokens --- */

/* The two lists, made anew where other tokens are shown. */
function makeTokens() {
    for (const [side, shown] of [['query', state.rows], ['key', state.cols]]) {
        const list = $(side), axis = data[side];
        list.textContent = '';
        list.setAttribute('aria-label', axis.title || side);
        $(side + '-title').textContent = axis.title || side;
        for (const i of shown) {
            const item = element(list, 'div', { className: 'token',
                textContent: label(axis, i), dir: 'auto', title:
                    inWords(axis, i) });
            item.setAttribute('role', 'option');
            item.setAttribute('aria-label', inWords(axis, i));
            item.dataset.index = i;
        }
        rove(list.children, 0);
    }
    lines.side = null;
    lines.held = false;
}

function look(side, index) {
    if (lines.held || lines.side === side && lines.index === index)
        return;
    lines.side = side;
    lines.index = index;
    redraw();
}

function hold(side, index) {
    const again = lines.held && lines.side === side && lines.index === index;
    lines.held = false;
    look(side, index);
    lines.held = !again;
    redraw();
}

function letGo() {
    lines.held = false;
    lines.side = null;
    redraw();
}

function tokenKey(e, side) {
    const items = [...$(side).children], k = items.indexOf(e.target);
    const other = side === 'query' ? 'key' : 'query';
    const to = e.key === 'ArrowLeft' || e.key === 'ArrowRight' ? -1
        : step(e.key, k, items.length, 1);
    if (k < 0)
        return;
    if (e.key === 'Enter' || e.key === ' ') {
        hold(side, Number(e.target.dataset.index));
    } else if (e.key === 'Escape') {
        letGo();
    } else if (to >= 0) {
        rove(items, to);
        items[to].focus();
    } else if (e.key === (side === 'query' ? 'ArrowRight' : 'ArrowLeft')) {
        const there = $(other).children, at = Math.min(k, there.length - 1);
        rove(there, at);
        there[at].focus();
    } else {
        return;
    }
    e.preventDefault();
}

function listenToTokens() {
    const token = (e) => e.target.closest('.token');
    const at = (item) => Number(item.dataset.index);
    for (const side of ['query', 'key']) {
        const list = $(side);
        list.addEventListener('pointerover', (e) => {
            if (token(e))
                look(side, at(token(e)));
        });
        list.addEventListener('pointerleave', () => lines.held || letGo());
        list.addEventListener('click', (e) => {
            if (token(e))
                hold(side, at(token(e)));
        });
        list.addEventListener('focusin', (e) => {
            if (token(e) && token(e).matches(':focus-visible'))
                look(side, at(token(e)));
        });
        list.addEventListener('keydown', (e) => tokenKey(e, side));
    }
    $('lines').addEventListener('focusout', () => lines.held || letGo());
    $('lines').addEventListener('scroll', redraw, { passive: true });
}

/* --- Drawing --- */

/* The weights between the token looked at and token i of the other side. */
function weightOf(m, i) {
    return lines.side === 'query' ? m[lines.index * S + i]
        : m[i * S + lines.index];
}

/* Behind each token of the other side, a stripe a head: its weight. */
function drawStripes(maps) {
    for (const side of ['query', 'key'])
        for (const item of $(side).children) {
            const i = Number(item.dataset.index);
            const own = side === lines.side;
            item.setAttribute('aria-selected', own && i === lines.index);
            item.classList.toggle('held', lines.held && own
                && i === lines.index);
            item.style.backgroundImage = own || !lines.side || !maps.length ? ''
                : stripes(maps, i);
        }
}

function stripes(maps, i) {
    if (!maps.some(([, m]) => weightOf(m, i) >= 0.005))
        return '';
    const width = 100 / maps.length;
    return 'linear-gradient(90deg,' + maps.map(([h, m], k) =>
        `${headColour(h, weightOf(m, i) * 0.6)} ${k * width}% `
        + `${(k + 1) * width}%`)
        .join() + ')';
}

/* What the token looked at looks at, the largest weights first. */
function drawHeadsReadout(maps) {
    if (!lines.side) {
        say('heads-readout', 'Point at a token to see its lines alone.');
        return;
    }
    const other = lines.side === 'query' ? 'key' : 'query';
    const shown = other === 'key' ? state.cols : state.rows;
    const best = [];
    for (const [h, m] of maps)
        for (const i of shown)
            best.push([weightOf(m, i), h, i]);
    best.sort((a, b) => b[0] - a[0]);
    const most = best.filter(([w]) => w > 0).slice(0, 3);
    say('heads-readout', inWords(data[lines.side], lines.index)
        + (most.length ? other === 'key' ? ' \u2192 ' : ' \u2190 ' : '')
        + most.map(([w, h, i]) => `${inWords(data[other], i)} ${digits(w)}`
            + (H > 1 ? ` (head ${headNumber(h)})` : '')).join('; '));
}

/* Lines of one map, those that cross what is seen; how many there are.  Heads
 * run beside each other, `aside` from the middle of the token. */
function drawMap(c, m, h, geometry, aside) {
    const { width, height, row } = geometry, top = geometry.top - aside;
    const least = Math.fround(state.least);
    let n = 0;
    c.strokeStyle = headColour(h, 1);
    for (let i = 0; i < state.rows.length; i++) {
        const t = state.rows[i], y = (i + 0.5) * row - top;
        if (lines.side === 'query' && t !== lines.index)
            continue;
        for (let j = 0; j < state.cols.length; j++) {
            const s = state.cols[j], w = m[t * S + s];
            if (w < least || w === 0
                || lines.side === 'key' && s !== lines.index)
                continue;
            n++;
            const z = (j + 0.5) * row - top;
            if (y < 0 && z < 0 || y > height && z > height)
                continue;
            c.globalAlpha = lines.side ? Math.pow(w, 0.7) : w;
            c.beginPath();
            c.moveTo(0, y);
            c.lineTo(width, z);
            c.stroke();
        }
    }
    return n;
}

/* Measured before anything is changed: the page is laid out once. */
function measureLines() {
    const view = $('lines'), row = parseFloat(styled('--row'));
    const all = row * Math.max(state.rows.length, state.cols.length);
    const titles = view.querySelector('.titles').offsetHeight;
    return { row, top: view.scrollTop,
        width: $('lines-canvas').parentNode.clientWidth,
        height: Math.min(all, view.clientHeight - titles) };
}

function drawHeads() {
    const geometry = measureLines(), canvas = $('lines-canvas');
    const maps = [];
    for (let h = 0; h < H; h++)
        if (state.on[h])
            maps.push([h, map(state.layer, h)]);
    drawHeadKeys();
    drawStripes(maps);
    drawHeadsReadout(maps);

    const c = fresh(canvas, geometry.width, geometry.height);
    const apart = Math.min(2, (geometry.row - 6) / maps.length);
    let n = 0;
    c.lineWidth = Math.max(apart, 1.5);
    maps.forEach(([h, m], k) => {
        n += drawMap(c, m, h, geometry, (k - (maps.length - 1) / 2) * apart);
    });
    canvas.dataset.lines = n;
    canvas.setAttribute('aria-label', `${n} lines of ${maps.length} heads, `
        + `layer ${layerNumber(state.layer)}`);
}
