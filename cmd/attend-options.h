#ifndef ATTEND_OPTIONS_H
#define ATTEND_OPTIONS_H

#include "attend-bare.h"
#include "attend-model.h"

/*
 * Options that only a model has a use for, and those that only bare attention
 * has, exclude each other.  With neither, each record tells by what it has;
 * then the model is opened for the first that wants it.
 */
struct attend {
    struct attend_model model;
    struct attend_bare bare;
    const char *model_by, *bare_by; /* such an option, as it was written */
};

/* What the command line says; ends the command where options do not go
 * together. */
void attend_options(struct attend *a, int argc, char **argv);

#endif
