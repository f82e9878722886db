#ifndef PIPEFORMER_COLORMAP_H
#define PIPEFORMER_COLORMAP_H

#include <stdint.h>

/* Colours for numbers: as 0xRRGGBB. */

/*
 * Viridis, from dark violet (0) over green to yellow (1): as light as the
 * number is large, also in grey and to the colour-blind.  x is cut to 0 .. 1;
 * NaN is 0.
 */
uint32_t pf_viridis(double x);

/* Where v lies between lo and hi, cut to 0 .. 1; a half where lo is hi. */
double pf_scale(double v, double lo, double hi);

/* The nearest of the 240 fixed colours of a terminal of 256: 16 to 255. */
unsigned pf_color_256(uint32_t rgb);

/*
 * How light a colour looks, 0 to 1: the relative luminance of WCAG 2.  Black
 * letters are the better ones above 0.179.
 */
double pf_luminance(uint32_t rgb);

#endif
