"""What a browser makes of attn-view's pages; run by html.t.

    html.py DIR

Each check below is a function; its docstring is its name.  It gets a browser
and takes DIR/NAME.html, and DIR/NAME.rec, the record that was drawn.  Lines
"ok NAME" and "not ok NAME" come out, why behind a tab.
"""
import os
import struct
import sys
import traceback

import browser
import stream

DIR = sys.argv[1]
checks = []


def check(f):
    checks.append(f)
    return f


def equal(what, got, want):
    assert got == want, "%s: %r, expected %r" % (what, got, want)


class Record:
    def __init__(self, name, field="attn"):
        with open("%s/%s.rec" % (DIR, name), "rb") as f:
            self.fields, tensors = next(stream.read(f))
        t = tensors[field]
        self.L, self.H, self.T, self.S = [1] * (4 - len(t.shape)) + t.shape
        self.v = stream.floats(t)

    def at(self, l, h, t, s):
        return self.v[((l * self.H + h) * self.T + t) * self.S + s]

    def lines(self, l, h, rows=None, cols=None, least=0.01):
        """How many lines a head has: weights as the page rounds them."""
        return sum(round(self.at(l, h, t, s) * 1e4) >= least * 1e4
                   for t in (range(self.T) if rows is None else rows)
                   for s in (range(self.S) if cols is None else cols))


def opened(b, name, **how):
    page = b.open("%s/%s.html" % (DIR, name), **how)
    page.wait("document.body.dataset.ready && document.body.dataset.drawn")
    page.frame()
    return page


def done(page):
    """Nothing was said on the console, nothing asked of the network."""
    said, asked = page.said, page.requests
    page.close()
    equal("console", said, [])
    equal("requests", [u for u in asked if not u.startswith("file://")], [])
    equal("files", len(asked), 1)


def lines(page):
    return int(page.js("$('lines-canvas').dataset.lines"))


# Of a copy: the browser remarks on reading a canvas again and again.
PIXELS = """
var pixels = (canvas) => {
    const copy = document.createElement('canvas');
    copy.width = canvas.width;
    copy.height = canvas.height;
    const c = copy.getContext('2d', { willReadFrequently: true });
    c.drawImage(canvas, 0, 0);
    return c.getImageData(0, 0, copy.width, copy.height).data;
};
"""


def ink(page):
    """Pixels of the lines that are not empty."""
    return page.js(PIXELS + """pixels($('lines-canvas'))
        .filter((v, i) => i % 4 === 3 && v > 0).length""")


def text(page, selector):
    return page.js("document.querySelector('%s').textContent" % selector)


def focus(page):
    return page.js("document.activeElement.id"
                   " || document.activeElement.className"
                   " || document.activeElement.parentNode.className")


def cell(page, row, col):
    """Where it is."""
    return page.js("""(() => {
        const g = layout(), b = g.view.getBoundingClientRect();
        return [b.x + g.left + (%d + 0.5) * g.cw - g.view.scrollLeft,
            b.y + g.head + (%d + 0.5) * g.ch - g.view.scrollTop];
    })()""" % (col, row))


def to_cell(page, row, col):
    page.mouse("mouseMoved", *cell(page, row, col))
    page.frame()


@check
def opens(b):
    """opens from file:// with the network off, silently"""
    for name in ("fairy", "matrix", "cross", "evil", "pair"):
        page = opened(b, name)
        for view in page.js("offered"):
            page.js("showView('%s')" % view)
            page.frame()
        done(page)


@check
def policy(b):
    """its policy lets no other script run and nothing be fetched"""
    page = opened(b, "fairy")
    page.js("""(() => {
        const s = document.createElement('script');
        s.textContent = 'window.ran = 1';
        document.body.append(s);
    })()""")
    equal("ran", page.js("window.ran || 0"), 0)
    equal("fetched", page.js("fetch('https://example.org/')"
                             ".then(() => 'yes', () => 'no')"), "no")
    assert any("Content Security Policy" in s for s in page.said), page.said
    equal("requests", [u for u in page.requests
                       if not u.startswith("file://")], [])
    page.close()


@check
def numbers(b):
    """holds every number of the record, to four digits"""
    for name in ("fairy", "pair", "cross"):
        r, page = Record(name), opened(b, name)
        got = page.js("""[].concat(...Array.from({ length: L * H },
            (_, k) => Array.from(map(Math.floor(k / H), k % H), digits)))""")
        equal(name, got, ["%.4f" % (round(x * 1e4) / 1e4) for x in r.v])
        done(page)


@check
def exact(b):
    """holds every number of any other matrix exactly"""
    r, page = Record("matrix", "m"), opened(b, "matrix")
    got = page.js("Array.from(map(0, 0), digits)")
    pack = [struct.pack("<f", float(x.replace("Infinity", "inf")))
            for x in got]
    equal("numbers", pack, [struct.pack("<f", x) for x in r.v])
    equal("views", page.js("offered"), ["map"])
    to_cell(page, 1, 2)
    equal("read-out", text(page, "#map-readout"),
          "row 1, column 2: -0.000012345679")
    done(page)


@check
def menu(b):
    """the layer menu and the slider change the layer"""
    r, page = Record("fairy"), opened(b, "fairy")
    for layer, key in ((1, "ArrowDown"), (r.L - 1, "End"), (0, "Home")):
        page.js("$('layer').focus()")
        page.key(key)
        equal("slider", page.js("$('layer-slider').value"), str(layer))
        equal("lines", lines(page), sum(r.lines(layer, h)
                                        for h in range(r.H)))
    page.js("$('layer-slider').focus()")
    page.key("ArrowRight", 2)
    equal("menu", page.js("$('layer').value"), "2")
    equal("lines", lines(page), sum(r.lines(2, h) for h in range(r.H)))
    done(page)


@check
def hover(b):
    """a token under the pointer has its row lit and its lines alone"""
    r, page = Record("fairy"), opened(b, "fairy")
    all_lines, all_ink = lines(page), ink(page)
    page.hover("#query .token", 4)
    equal("selected", page.js("[...document.querySelectorAll("
                              "'[aria-selected=true].token')].map("
                              "(e) => e.parentNode.id + e.dataset.index)"),
          ["query4"])
    equal("lines", lines(page), sum(r.lines(0, h, rows=[4])
                                    for h in range(r.H)))
    assert ink(page) < all_ink
    lit = page.js("[...document.querySelectorAll('#key .token')].map("
                  "(e) => e.style.backgroundImage !== '')")
    equal("lit", lit, [any(round(r.at(0, h, 4, s) * 1e4) >= 50
                           for h in range(r.H)) for s in range(r.S)])
    w, h, s = max((r.at(0, h, 4, s), h, s) for h in range(r.H)
                  for s in range(r.S))
    said = text(page, "#heads-readout")
    assert "query 4 \u201c%s\u201d" % r.fields["tokens"][4] in said, said
    assert "key %d \u201c%s\u201d %.4f (head %d)" % (
        s, r.fields["tokens"][s], w, h) in said, said
    page.hover("#key .token", 1)
    equal("lines", lines(page), sum(r.lines(0, h, cols=[1])
                                    for h in range(r.H)))
    page.hover("h1")
    equal("lines", (lines(page), ink(page)), (all_lines, all_ink))
    page.click("#query .token", 2)  # held
    page.hover("#query .token", 5)
    equal("held", lines(page), sum(r.lines(0, h, rows=[2])
                                   for h in range(r.H)))
    done(page)


@check
def heads(b):
    """a head that is toggled loses its lines"""
    r, page = Record("fairy"), opened(b, "fairy")
    each = [r.lines(0, h) for h in range(r.H)]
    equal("all", lines(page), sum(each))
    before = ink(page)
    page.click(".headkey", 1)
    equal("pressed", page.js("document.querySelectorAll('.headkey')[1]"
                             ".getAttribute('aria-pressed')"), "false")
    equal("without 1", lines(page), sum(each) - each[1])
    assert ink(page) < before
    page.click(".headkey", 1)
    equal("with 1", (lines(page), ink(page)), (sum(each), before))
    page.click(".headkey", 2, browser.SHIFT)
    equal("2 alone", lines(page), each[2])
    page.click("#none")
    equal("none", (lines(page), ink(page)), (0, 0))
    page.click("#all")
    equal("all", lines(page), sum(each))
    done(page)


@check
def heat(b):
    """the cell under the pointer is read out, and has its number's colour"""
    r, page = Record("fairy"), opened(b, "fairy")
    page.click("#tab-map")
    page.js("setLayer(3)")
    page.js("$('head').value = 2,"
            "$('head').dispatchEvent(new Event('change'))")
    for t, s in ((0, 0), (4, 1), (8, 8), (8, 0), (2, 7)):
        to_cell(page, t, s)
        equal("read-out", text(page, "#map-readout"),
              "query %d \u201c%s\u201d \u2192 key %d \u201c%s\u201d: %.4f" % (
                  t, r.fields["tokens"][t], s, r.fields["tokens"][s],
                  round(r.at(3, 2, t, s) * 1e4) / 1e4))
    to_cell(page, -3, -3)
    got, want = page.js(PIXELS + """(() => {
        const g = layout(), got = [], want = [], p = pixels($('map-canvas'));
        for (let i = 0; i < T; i++)
            for (let j = 0; j < S; j++) {
                const at = 4 * (Math.floor(g.head + (i + 0.15) * g.ch)
                    * $('map-canvas').width
                    + Math.floor(g.left + (j + 0.15) * g.cw));
                got.push(p[at] << 16 | p[at + 1] << 8 | p[at + 2]);
                const k = Math.round(map(3, 2)[i * S + j] * 255);
                want.push(parseInt(data.palette.slice(6 * k, 6 * k + 6), 16));
            }
        return [got, want];
    })()""")
    equal("colours", got, want)
    done(page)


@check
def touch(b):
    """a cell that is touched is read out"""
    r, page = Record("fairy"), opened(b, "fairy")
    page.call("Emulation.setTouchEmulationEnabled", {"enabled": True})
    page.js("showView('map')")
    page.frame()
    x, y = cell(page, 4, 1)
    for kind, points in (("touchStart", [{"x": x, "y": y}]), ("touchEnd", [])):
        page.call("Input.dispatchTouchEvent",
                  {"type": kind, "touchPoints": points})
    page.frame()
    said = text(page, "#map-readout")
    assert said.endswith(": %.4f" % (round(r.at(0, 0, 4, 1) * 1e4) / 1e4)), \
        said
    done(page)


@check
def all_heads(b):
    """the view of all heads draws them all; a click enlarges one"""
    r, page = Record("fairy"), opened(b, "fairy", height=1600)
    page.click("#tab-grid")
    page.wait("grid.seen.size === L * H")
    page.wait("grid.dirty.size === 0")
    equal("sizes", page.js("[...document.querySelectorAll('#cells canvas')]"
                           ".every((c) => c.width === S && c.height === T)"),
          True)
    got, want = page.js(PIXELS + """(() => {
        const got = [], want = [];
        const p = pixels(grid.cells[2 * H + 1].firstChild);
        for (let i = 0; i < T * S; i++) {
            got.push(p[4 * i] << 16 | p[4 * i + 1] << 8 | p[4 * i + 2]);
            const k = Math.round(map(2, 1)[i] * 255);
            want.push(parseInt(data.palette.slice(6 * k, 6 * k + 6), 16));
        }
        return [got, want];
    })()""")
    equal("colours", got, want)
    page.click(".gridcell button", 2 * r.H + 3)
    equal("view", page.js("[view, state.layer, state.head]"), ["map", 2, 3])
    equal("focus", focus(page), "map-scroller")
    done(page)


@check
def pairs(b):
    """the sentences of a pair can be looked at one by one"""
    r, page = Record("pair"), opened(b, "pair")
    parts = page.js("data.query.parts")
    ways = {0: (None, None), 1: (0, 0), 2: (0, 1), 3: (1, 0), 4: (1, 1)}
    for k, (q, s) in ways.items():
        page.js("$('pair').focus()")
        page.key("Home")
        page.key("ArrowDown", k)
        rows = [i for i, p in enumerate(parts) if q is None or p == q]
        cols = [i for i, p in enumerate(parts) if s is None or p == s]
        equal("rows", page.js("[...$('query').children].map("
                              "(e) => +e.dataset.index)"), rows)
        equal("keys", page.js("[...$('key').children].map("
                              "(e) => +e.dataset.index)"), cols)
        equal("lines", lines(page), sum(r.lines(0, h, rows, cols)
                                        for h in range(r.H)))
    page.click("#tab-map")
    to_cell(page, 0, 1)
    t, s = [[i for i, p in enumerate(parts) if p == 1][k] for k in (0, 1)]
    said = text(page, "#map-readout")
    assert said.endswith("%.4f" % (round(r.at(0, 0, t, s) * 1e4) / 1e4)), said
    done(page)


@check
def cross(b):
    """queries and keys that are not the same have lists of their own"""
    r, page = Record("cross"), opened(b, "cross")
    equal("lists", page.js("[$('query').children.length,"
                           " $('key').children.length]"), [r.T, r.S])
    equal("lines", lines(page), sum(r.lines(0, h) for h in range(r.H)))
    done(page)


@check
def hostile(b):
    """markup in tokens and titles stays text"""
    r, page = Record("evil"), opened(b, "evil")
    equal("title", page.js("document.title"), page.js("data.title"))
    equal("heading", text(page, "h1"), page.js("data.title"))
    equal("tokens", page.js("[...$('query').children].map("
                            "(e) => e.textContent)"),
          [t.replace(" ", "\u00b7").replace("\u2028", "<U+2028>")
           for t in r.fields["tokens"]])
    equal("images", page.js("document.images.length"), 0)
    equal("scripts", page.js("document.scripts.length"), 3)
    equal("elements", page.js("document.querySelectorAll('body > :not(header,"
                              "main, script, noscript)').length"), 0)
    page.hover("#query .token", 0)
    page.click("#tab-map")
    to_cell(page, 1, 0)
    said = text(page, "#map-readout")
    assert r.fields["tokens"][0] in said and r.fields["tokens"][1] in said
    done(page)


@check
def keyboard(b):
    """all of it can be reached with the keys alone"""
    r, page = Record("fairy"), opened(b, "fairy")
    stops = []
    while len(stops) < 20:
        page.key("Tab")
        if page.js("""(() => {
            const e = document.activeElement, again = e.dataset.stopped;
            e.dataset.stopped = 'yes';
            return again || e === document.body;
        })()"""):
            break
        stops.append(focus(page))
        assert page.js("getComputedStyle(document.activeElement)"
                       ".outlineStyle !== 'none'"), "no outline: " + stops[-1]
    stops = [s for s in stops if s not in ("lines", "SUMMARY", "")]
    equal("stops", stops[:8], ["theme", "tab-heads", "layer", "layer-slider",
                               "least", "headkey", "token", "token"])

    page.js("document.querySelector('.headkey').focus()")
    page.key("ArrowRight")
    page.key(" ")
    equal("head 1 off", page.js("state.on"),
          [h != 1 for h in range(r.H)])
    page.key(" ", modifiers=browser.SHIFT)
    equal("head 1 alone", page.js("state.on"),
          [h == 1 for h in range(r.H)])
    page.key("Tab")
    page.key("ArrowDown", 3)
    equal("token", lines(page), r.lines(0, 1, rows=[3]))
    page.key("Enter")
    page.key("ArrowDown")
    equal("held", lines(page), r.lines(0, 1, rows=[3]))
    page.key("Escape")
    page.key("ArrowRight")
    equal("other list", lines(page), r.lines(0, 1, cols=[4]))

    page.js("$('tab-heads').focus()")
    page.key("ArrowRight")
    equal("tab", (focus(page), page.js("view")), ("tab-grid", "grid"))
    page.key("Tab", 2)
    equal("grid", focus(page), "gridcell")
    page.key("ArrowDown")
    page.key("ArrowRight", 2)
    equal("named", text(page, "#grid-readout"), "layer 1, head 2")
    page.key("Enter")
    equal("enlarged", (focus(page), page.js("[view, state.layer,"
                                            " state.head]")),
          ("map-scroller", ["map", 1, 2]))
    page.key("ArrowDown")  # the first brings the cursor
    page.key("ArrowDown", 2)
    page.key("ArrowRight")
    said = text(page, "#map-readout")
    assert said.endswith(": %.4f" % (round(r.at(1, 2, 2, 1) * 1e4) / 1e4)), \
        said
    page.key("PageDown")
    said = text(page, "#map-readout")
    assert said.endswith(": %.4f" % (round(r.at(2, 2, 2, 1) * 1e4) / 1e4)), \
        said
    page.key("End")
    equal("end", page.js("cursor.col"), r.S - 1)
    page.key("Escape")
    equal("back", (focus(page), page.js("view")), ("gridcell", "grid"))
    done(page)


@check
def names(b):
    """everything that can be operated has a name and a role"""
    page = opened(b, "fairy")
    for view in page.js("offered"):
        page.js("showView('%s')" % view)
        page.frame()
        tree = page.call("Accessibility.getFullAXTree")["nodes"]
        for node in tree:
            role = node.get("role", {}).get("value")
            if role in ("button", "combobox", "slider", "checkbox", "tab",
                        "option", "listbox", "grid", "application", "img",
                        "toolbar", "tabpanel") and not node.get("ignored"):
                assert node.get("name", {}).get("value"), node
        roles = [n.get("role", {}).get("value") for n in tree]
        assert "status" in roles and "tab" in roles, roles
    done(page)


@check
def shade(b):
    """light and dark, as the system or the button say"""
    page = opened(b, "fairy", dark=True)
    paper = """getComputedStyle(document.body).backgroundColor
        .match(/[0-9]+/g).reduce((sum, c) => sum + Number(c), 0)"""
    dark = page.js(paper)
    page.shade(False)
    page.frame()
    light = page.js(paper)
    page.click("#theme")
    equal("button", page.js(paper), dark)
    page.shade(True)
    page.click("#theme")
    equal("again", page.js(paper), light)
    assert dark < 150 and light > 650, (dark, light)
    done(page)


@check
def narrow(b):
    """nothing runs out of a narrow window"""
    for name in ("fairy", "pair", "matrix", "evil"):
        page = opened(b, name, width=480)
        for view in page.js("offered"):
            page.js("showView('%s')" % view)
            page.frame()
            if view == "heads":
                page.hover("#query .token", 4)
            wide = page.js("""[...document.querySelectorAll(
                'html, header, #tabs, #controls, #keys, .readout, #lines')]
                .filter((e) => e.scrollWidth > e.clientWidth)
                .map((e) => e.id || e.tagName)""")
            equal("%s, %s: cut" % (name, view), wide, [])
        done(page)


@check
def steady(b):
    """what is pointed at stays where it is, whatever is said of it"""
    for width in (480, 1280):
        page = opened(b, "evil", width=width)
        before = page.js("$('lines').getBoundingClientRect().top")
        for k in (1, 4, 0):
            page.hover("#query .token", k)
            equal("top", page.js("$('lines').getBoundingClientRect().top"
                                 " + scrollY"), before)
            said = text(page, "#heads-readout")
            assert said.startswith("query %d " % k), said
        done(page)


@check
def quick(b):
    """144 heads of 128 tokens are drawn without a pause"""
    page = opened(b, "large")
    drawn = "Number(document.body.dataset.drawn)"
    times = {}

    def took(what):
        page.frame()
        times[what] = max(times.get(what, 0), page.js(drawn))

    for l in range(4):
        page.js("setLayer(%d)" % l)
        took("layer")
    for k in range(5):
        page.hover("#query .token", k)
        took("token")
    page.js("setHeads((h) => h % 2)")
    took("heads")
    page.js("$('lines').scrollTop = 1000")
    took("scroll")
    page.js("showView('grid')")
    page.wait("[...grid.seen].every((c) => !grid.dirty.has(c))")
    took("grid")
    page.js("scrollTo(0, 600)")
    took("grid")
    page.js("showView('map')")
    took("map")
    for k in range(5):
        to_cell(page, 10 + k, 20 + k)
        took("cell")
    sys.stderr.write("# milliseconds a frame: %s\n" % ", ".join(
        "%s %.1f" % i for i in times.items()))
    slow = {k: t for k, t in times.items() if t > 200}  # a busy machine
    equal("over 200 ms", slow, {})
    done(page)


def main():
    with browser.Browser() as b:
        for f in checks:
            if len(sys.argv) > 2 and f.__name__ not in sys.argv[2:]:
                continue
            try:
                f(b)
                print("ok " + f.__doc__)
            except Exception as e:  # each check is reported
                why = str(e) or traceback.format_exc().replace("\n", " | ")
                print("not ok %s\t%s: %s" % (f.__doc__, type(e).__name__, why))
            sys.stdout.flush()


if not browser.find():
    sys.exit(77)
main()
