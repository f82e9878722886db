#ifndef PF_UTF8_PRIVATE_H
#define PF_UTF8_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * From p[i] on, where a character begins, to where one begins up to which all
 * is UTF-8, perhaps before p[n] and before the first byte that is not; i is 3
 * or more.  utf8-avx2.c; NULL without.
 */
extern size_t (*const pf_utf8_span_avx2)(const char *p, size_t i, size_t n);

#endif
