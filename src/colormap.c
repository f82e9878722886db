/*
 * Viridis is a table: its colours were found by making equal steps look equal,
 * and no formula has them.  These are the 256 of matplotlib 1.5 and later, by
 * S. van der Walt, N. Smith and E. Firing (2015), given to all as CC0.
 */
#include <pipeformer/colormap.h>

#include <math.h>

static const char viridis[] =
    "44015444025645045745055946075a46085c460a5d460b5e470d60470e61471063"
    "47116447136548146748166848176948186a481a6c481b6d481c6e481d6f481f70"
    "482071482173482374482475482576482677482878482979472a7a472c7a472d7b"
    "472e7c472f7d46307e46327e46337f463480453581453781453882443983443a83"
    "443b84433d84433e85423f854240864241864142874144874045884046883f4788"
    "3f48893e49893e4a893e4c8a3d4d8a3d4e8a3c4f8a3c508b3b518b3b528b3a538b"
    "3a548c39558c39568c38588c38598c375a8c375b8d365c8d365d8d355e8d355f8d"
    "34608d34618d33628d33638d32648e32658e31668e31678e31688e30698e306a8e"
    "2f6b8e2f6c8e2e6d8e2e6e8e2e6f8e2d708e2d718e2c718e2c728e2c738e2b748e"
    "2b758e2a768e2a778e2a788e29798e297a8e297b8e287c8e287d8e277e8e277f8e"
    "27808e26818e26828e26828e25838e25848e25858e24868e24878e23888e23898e"
    "238a8d228b8d228c8d228d8d218e8d218f8d21908d21918c20928c20928c20938c"
    "1f948c1f958b1f968b1f978b1f988b1f998a1f9a8a1e9b8a1e9c891e9d891f9e89"
    "1f9f881fa0881fa1881fa1871fa28720a38620a48621a58521a68522a78522a884"
    "23a98324aa8325ab8225ac8226ad8127ad8128ae8029af7f2ab07f2cb17e2db27d"
    "2eb37c2fb47c31b57b32b67a34b67935b77937b87838b9773aba763bbb753dbc74"
    "3fbc7340bd7242be7144bf7046c06f48c16e4ac16d4cc26c4ec36b50c46a52c569"
    "54c56856c66758c7655ac8645cc8635ec96260ca6063cb5f65cb5e67cc5c69cd5b"
    "6ccd5a6ece5870cf5773d05675d05477d1537ad1517cd2507fd34e81d34d84d44b"
    "86d54989d5488bd6468ed64590d74393d74195d84098d83e9bd93c9dd93ba0da39"
    "a2da37a5db36a8db34aadc32addc30b0dd2fb2dd2db5de2bb8de29bade28bddf26"
    "c0df25c2df23c5e021c8e020cae11fcde11dd0e11cd2e21bd5e21ad8e219dae319"
    "dde318dfe318e2e418e5e419e7e419eae51aece51befe51cf1e51df4e61ef6e620"
    "f8e621fbe723fde725";

static uint32_t
digit(char c)
{
    return (uint32_t)(c <= '9' ? c - '0' : c - 'a' + 10);
}

uint32_t
pf_viridis(double x)
{
    const char *p = viridis
        + 6 * (unsigned)(x > 0 ? (x < 1 ? x * 255 + 0.5 : 255) : 0);
    uint32_t rgb = 0;

    for (int i = 0; i < 6; i++)
        rgb = rgb << 4 | digit(p[i]);
    return rgb;
}

double
pf_scale(double v, double lo, double hi)
{
    if (!(hi > lo))
        return v < lo ? 0 : v > hi ? 1 : 0.5;
    if (v <= lo)
        return 0;
    if (v >= hi)
        return 1;
    /* Halves: hi - lo may be beyond double. */
    return (v / 2 - lo / 2) / (hi / 2 - lo / 2);
}

static int
square(int a)
{
    return a * a;
}

/* How far a colour is from r, g, b. */
static int
distance(const int *c, int r, int g, int b)
{
    return square(c[0] - r) + square(c[1] - g) + square(c[2] - b);
}

/*
 * xterm: 16 to 231 are a cube of levels 0, 95, 135, ... 255; 232 to 255 are
 * greys 8, 18, ... 238.
 */
unsigned
pf_color_256(uint32_t rgb)
{
    const int c[3] = { rgb >> 16 & 255, rgb >> 8 & 255, rgb & 255 };
    int level[3], value[3], grey = ((c[0] + c[1] + c[2]) / 3 - 3) / 10;

    for (int i = 0; i < 3; i++) {
        level[i] = c[i] < 48 ? 0 : c[i] < 115 ? 1 : (c[i] - 35) / 40;
        value[i] = level[i] ? 55 + 40 * level[i] : 0;
    }
    grey = grey < 0 ? 0 : grey > 23 ? 23 : grey;
    if (distance(c, 8 + 10 * grey, 8 + 10 * grey, 8 + 10 * grey)
        < distance(c, value[0], value[1], value[2]))
        return (unsigned)(232 + grey);
    return (unsigned)(16 + 36 * level[0] + 6 * level[1] + level[2]);
}

static double
linear(uint32_t c)
{
    double x = (c & 255) / 255.0;

    return x <= 0.04045 ? x / 12.92 : pow((x + 0.055) / 1.055, 2.4);
}

double
pf_luminance(uint32_t rgb)
{
    return 0.2126 * linear(rgb >> 16) + 0.7152 * linear(rgb >> 8)
        + 0.0722 * linear(rgb);
}
